// The form of the home page: parses its bytes into the value that the API's schema validates, and
// turns a problem into messages at the fields. Does not read the request itself.
import { randomBytes } from 'node:crypto'
import { bareLink, type FormControl, type FormView, ON_DATE } from '../pages/home-form.ts'
import type { FormFault, Strings } from '../pages/strings/en.ts'
import { fill } from '../pages/strings/negotiate.ts'
import type { Problem } from '../problem.ts'
import { escapePointer, invalidRequest } from '../field-faults.ts'
import { memberNames } from './create-request.ts'
import { decodePairs } from './decode-form.ts'

/** A form: its values as entered, and the value to validate or the problem. */
export interface ParsedForm {
  readonly entered: FormView['values']
  readonly parsed: { readonly value: unknown } | { readonly problem: Problem }
}

const controls: readonly FormControl[] = [...memberNames, 'expires_on']

/** The fields of an empty form. */
export const emptyForm = formOf(new Map())

/** Parses `application/x-www-form-urlencoded` bytes, which must be UTF-8. */
export function parseForm(bytes: Buffer, nowMs: number): ParsedForm {
  const pairs = decodePairs(bytes)
  if (pairs === undefined) {
    const detail = 'The body must be a form encoded in UTF-8'
    const fault = { pointer: '', code: 'malformed-form', detail }
    return { entered: emptyForm, parsed: { problem: invalidRequest([fault]) } }
  }
  const fields = new Map(pairs.map(([name, value]) => [name, value.trim()]))
  const entered = formOf(fields)
  if (fields.size < pairs.length)
    return { entered, parsed: { problem: invalidRequest([duplicateFault(pairs)], memberNames) } }
  fields.delete('expires_on') // not a member of the API's body
  const filled = [...fields].filter(([name, value]) => value !== '' || !isControl(name))
  const members = filled.map(([name, value]) => {
    const isDate = name === 'ttl_days' && value === ON_DATE
    return [name, isDate ? daysUntil(entered.expires_on, nowMs) : memberOf(name, value)]
  })
  return { entered, parsed: { value: Object.fromEntries(members) as unknown } }
}

/** Each field with its value, empty if it has none. */
function formOf(fields: ReadonlyMap<string, string>): FormView['values'] {
  const entries = controls.map((name) => [name, fields.get(name) ?? ''])
  return Object.fromEntries(entries) as FormView['values']
}

function duplicateFault(pairs: readonly [string, string][]) {
  const names = pairs.map(([name]) => name)
  const name = names.find((candidate, i) => names.indexOf(candidate) !== i) ?? ''
  const detail = 'must not be given more than once'
  return { pointer: `/${escapePointer(name)}`, code: 'duplicate', detail }
}

/** The value in the API's body; unlike the API, tolerates what people paste or omit. */
function memberOf(name: string, value: string): number | string {
  if (name === 'long_url' && bareLink.test(value)) return `https://${value}`
  return name === 'ttl_days' && /^[0-9]+(\.0+)?$/.test(value) ? Number(value) : value
}

const DAY_MS = 86_400_000

/** The lifetime in days of a link that expires on `date`, in UTC; NaN if there is no such date. */
function daysUntil(date: string, nowMs: number): number {
  const startMs = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(date) : Number.NaN
  // Date.parse reads 2027-02-29 as the first day of March.
  const exists = !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(date)
  return exists ? Math.ceil((startMs - nowMs) / DAY_MS) : Number.NaN
}

function isControl(name: string): name is FormControl {
  return (controls as readonly string[]).includes(name)
}

/** Where on the page to show a problem, and the messages. */
export function placeProblem(
  problem: Problem,
  { entered, strings }: { entered: FormView['values']; strings: Strings },
): Pick<FormView, 'faults' | 'message' | 'suggestion'> {
  const alias = entered.custom_alias
  if (problem.name === 'alias-taken') {
    const taken = fill(strings.faults['alias-taken'], { alias })
    return { faults: { custom_alias: taken }, suggestion: similarAlias(alias) }
  }
  if (problem.name === 'target-blocked')
    return { faults: { long_url: strings.faults['target-blocked'] } }
  const faults: Partial<Record<FormControl, string>> = {}
  for (const { pointer, code } of problem.errors ?? []) {
    const name = pointer.slice(1)
    const isDate = name === 'ttl_days' && entered.ttl_days === ON_DATE
    if (isControl(name) && isFormFault(strings, code))
      faults[isDate ? 'expires_on' : name] ??= fill(strings.faults[code], { alias })
  }
  if (Object.keys(faults).length > 0) return { faults }
  return { faults, message: messageOf(problem, strings) }
}

function isFormFault({ faults }: Strings, code: string): code is FormFault {
  return Object.hasOwn(faults, code)
}

/** A sentence about the whole form; the API's detail is in English. */
function messageOf({ name, detail, headers, errors }: Problem, strings: Strings): string {
  const messages: Readonly<Partial<Record<string, string>>> = strings.messages
  const message = messages[errors?.[0]?.code ?? name] ?? detail
  return fill(message, { seconds: headers?.['Retry-After'] ?? '' })
}

/** Characters of the alias that a suggestion keeps; a hyphen and two hexadecimal digits follow. */
const KEPT_LENGTH_MAX = 7

/** Another alias, which is possibly taken, too; form-alias.js has the same function. */
function similarAlias(alias: string): string {
  const kept = alias.slice(0, KEPT_LENGTH_MAX).replace(/[-_]+$/, '')
  return `${kept}-${randomBytes(1).toString('hex')}`
}
