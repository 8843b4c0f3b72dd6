// The form that reports abuse of a link: parses its bytes, and validates its fields. The rules do
// not depend on the links that exist, so that the form reveals nothing about them.
import { isCode, parseCodePath } from '../../links/alias.ts'
import {
  CONTACT_LENGTH_MAX,
  DETAILS_LENGTH_MAX,
  type Report,
  type ReportReason,
  reportReasons,
} from '../../links/report.ts'
import { isReserved } from '../../links/reserved.ts'
import { parseHost, TARGET_LENGTH_MAX } from '../../links/target-url.ts'
import { type AbuseField, abuseFields, type AbuseView } from '../pages/abuse.ts'
import { decodePairs } from './decode-form.ts'

/** The values of a form as entered. */
type Entered = AbuseView['values']

/** A form: its values as entered, and the report without its id, or the messages. */
export interface ParsedAbuseForm {
  readonly entered: Entered
  readonly parsed: ValidReport | Pick<AbuseView, 'faults' | 'message'>
}

/** The content of a report. */
interface ValidReport {
  readonly report: Omit<Report, 'id'>
}

/** The fields of a form with this link. */
export function abuseFormOf(link = ''): Entered {
  return { link, reason: '', details: '', contact: '' }
}

const notUtf8 = 'The body must be a form encoded in UTF-8'

/** Parses `application/x-www-form-urlencoded` bytes; `ownHosts` are results of `parseHost`. */
export function parseAbuseForm(bytes: Buffer, ownHosts: ReadonlySet<string>): ParsedAbuseForm {
  const pairs = decodePairs(bytes)
  if (pairs === undefined) {
    return { entered: abuseFormOf(), parsed: { faults: {}, message: notUtf8 } }
  }
  const fields = new Map(pairs)
  // Browsers send line breaks as CR LF.
  const valueOf = (name: AbuseField) => (fields.get(name) ?? '').replaceAll('\r\n', '\n').trim()
  const values = abuseFields.map((name) => [name, valueOf(name)])
  const entered = Object.fromEntries(values) as Record<AbuseField, string>
  const unknown = [...fields.keys()].find(
    (name) => !(abuseFields as readonly string[]).includes(name),
  )
  if (fields.size < pairs.length || unknown !== undefined) {
    const allowed = new Intl.ListFormat('en-GB').format(abuseFields)
    return { entered, parsed: { faults: {}, message: `The fields must be ${allowed}, each once` } }
  }
  return { entered, parsed: validate(entered, ownHosts) }
}

function validate(entered: Entered, ownHosts: ReadonlySet<string>): ParsedAbuseForm['parsed'] {
  const code = reportedCode(entered.link, ownHosts)
  const faults: Partial<Record<AbuseField, string>> = {
    ...(code === undefined && { link: linkFault(entered.link, ownHosts) }),
    ...(!isReason(entered.reason) && { reason: `The reason must be ${reasonsAllowed}` }),
    ...detailsFault(entered.details),
    ...contactFault(entered.contact),
  }
  if (code === undefined || !isReason(entered.reason) || Object.keys(faults).length > 0) {
    return { faults }
  }
  const { reason, details, contact } = entered
  const orNull = (value: string) => (value === '' ? null : value)
  return { report: { code, reason, details: orNull(details), contact: orNull(contact) } }
}

const reasonsAllowed = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(reportReasons)

function isReason(reason: string): reason is ReportReason {
  return (reportReasons as readonly string[]).includes(reason)
}

/** The code of a short link of this service, or of a code; `undefined` if it is neither. */
export function reportedCode(link: string, ownHosts: ReadonlySet<string>): string | undefined {
  const code = isCode(link) ? link : codeOfUrl(link, ownHosts)
  return code === undefined || isReserved(code) ? undefined : code
}

const scheme = /^https?:\/\//i

/** People copy links with or without their scheme. */
function codeOfUrl(link: string, ownHosts: ReadonlySet<string>): string | undefined {
  if (link.length > TARGET_LENGTH_MAX) return undefined
  const url = URL.parse(scheme.test(link) ? link : `https://${link}`)
  const host = url === null ? undefined : parseHost(url.host)
  if (url === null || host === undefined || !ownHosts.has(host)) return undefined
  return parseCodePath(url.pathname)
}

function linkFault(link: string, ownHosts: ReadonlySet<string>): string {
  const hosts = [...ownHosts].join(' or ')
  const allowed = `a short link of ${hosts}, or its code of 1 to 10 letters, digits, - or _`
  return link === '' ? `The link is required: ${allowed}` : `The link must be ${allowed}`
}

/** Other invisible characters, which some scripts need, are escaped where they are displayed. */
const control = /(?![\n\t])\p{Cc}/u
const invisible = /[\p{C}\u2028\u2029]/u

function detailsFault(details: string): Partial<Record<AbuseField, string>> {
  if (details.length > DETAILS_LENGTH_MAX) {
    const length = `they have ${details.length}`
    return { details: `The details must have at most ${DETAILS_LENGTH_MAX} characters: ${length}` }
  }
  if (!control.test(details)) return {}
  return { details: 'The details must not contain control characters' }
}

const address = /^[^\s@]+@[^\s@]+$/

function contactFault(contact: string): Partial<Record<AbuseField, string>> {
  const isValid = contact.length <= CONTACT_LENGTH_MAX && address.test(contact)
  if (contact === '' || (isValid && !invisible.test(contact))) return {}
  const allowed = `an e-mail address of at most ${CONTACT_LENGTH_MAX} characters`
  return { contact: `The contact must be ${allowed}, or empty` }
}
