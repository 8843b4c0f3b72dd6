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
import type { Strings } from '../pages/strings/en.ts'
import { fill } from '../pages/strings/negotiate.ts'
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

/** What the messages depend on. */
interface FormContext {
  /** Results of `parseHost`. */
  readonly ownHosts: ReadonlySet<string>
  readonly strings: Strings
}

/** The fields of a form with this link. */
export function abuseFormOf(link = ''): Entered {
  return { link, reason: '', details: '', contact: '' }
}

/** Parses `application/x-www-form-urlencoded` bytes. */
export function parseAbuseForm(bytes: Buffer, context: FormContext): ParsedAbuseForm {
  const { abuse, messages } = context.strings
  const pairs = decodePairs(bytes)
  if (pairs === undefined) {
    return { entered: abuseFormOf(), parsed: { faults: {}, message: messages['malformed-form'] } }
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
    return { entered, parsed: { faults: {}, message: abuse.messages.fields } }
  }
  return { entered, parsed: validate(entered, context) }
}

function validate(entered: Entered, context: FormContext): ParsedAbuseForm['parsed'] {
  const { strings } = context
  const code = reportedCode(entered.link, context.ownHosts)
  const faults: Partial<Record<AbuseField, string>> = {
    ...(code === undefined && { link: linkFault(entered.link, context) }),
    ...(!isReason(entered.reason) && { reason: strings.abuse.faults.reason }),
    ...detailsFault(entered.details, strings),
    ...contactFault(entered.contact, strings),
  }
  if (code === undefined || !isReason(entered.reason) || Object.keys(faults).length > 0) {
    return { faults }
  }
  const { reason, details, contact } = entered
  const orNull = (value: string) => (value === '' ? null : value)
  return { report: { code, reason, details: orNull(details), contact: orNull(contact) } }
}

function isReason(reason: string): reason is ReportReason {
  return (reportReasons as readonly string[]).includes(reason)
}

/** The code in `link`: a short link of this service, or a code; `undefined` if it is neither. */
export function reportedCode(link: string, ownHosts: ReadonlySet<string>): string | undefined {
  const code = isCode(link) ? link : codeOfUrl(link, ownHosts)
  return code === undefined || isReserved(code) ? undefined : code
}

const scheme = /^https?:\/\//i

/** The code in a URL, with or without its scheme, as people copy it. */
function codeOfUrl(link: string, ownHosts: ReadonlySet<string>): string | undefined {
  if (link.length > TARGET_LENGTH_MAX) return undefined
  const url = URL.parse(scheme.test(link) ? link : `https://${link}`)
  const host = url === null ? undefined : parseHost(url.host)
  if (url === null || host === undefined || !ownHosts.has(host)) return undefined
  return parseCodePath(url.pathname)
}

function linkFault(link: string, { ownHosts, strings }: FormContext): string {
  const { faults } = strings.abuse
  const hosts = new Intl.ListFormat(strings.locale, { type: 'disjunction' }).format(ownHosts)
  return fill(link === '' ? faults.linkRequired : faults.link, { hosts })
}

/**
 * Rejected in the details. Other invisible characters are allowed, because some languages need
 * them; `curtail report` escapes them when it prints the details.
 */
const control = /(?![\n\t])\p{Cc}/u
const invisible = /[\p{C}\u2028\u2029]/u

function detailsFault(details: string, { abuse }: Strings): Partial<Record<AbuseField, string>> {
  const { length } = details
  if (length > DETAILS_LENGTH_MAX) {
    const lengths = { max: String(DETAILS_LENGTH_MAX), length: String(length) }
    return { details: fill(abuse.faults.detailsLength, lengths) }
  }
  return control.test(details) ? { details: abuse.faults.detailsControl } : {}
}

const address = /^[^\s@]+@[^\s@]+$/

function contactFault(contact: string, { abuse }: Strings): Partial<Record<AbuseField, string>> {
  const isValid = contact.length <= CONTACT_LENGTH_MAX && address.test(contact)
  if (contact === '' || (isValid && !invisible.test(contact))) return {}
  return { contact: fill(abuse.faults.contact, { max: String(CONTACT_LENGTH_MAX) }) }
}
