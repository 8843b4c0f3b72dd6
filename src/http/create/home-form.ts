// The form of the home page: parses its bytes into the value that the API's schema validates, and
// turns a problem into messages at the fields. Does not read the request itself.
import { randomBytes } from 'node:crypto'
import { bareLink, type FormField, formFields, type HomeView } from '../pages/home.ts'
import type { Problem } from '../problem.ts'
import { escapePointer, invalidRequest, memberNames } from './create-request.ts'

/** A form: its values as entered, and the value to validate or the problem. */
export interface ParsedForm {
  readonly entered: HomeView['values']
  readonly parsed: { readonly value: unknown } | { readonly problem: Problem }
}

/** The fields of an empty form. */
export const emptyForm = formOf(new Map())

/** Parses `application/x-www-form-urlencoded` bytes, which must be UTF-8. */
export function parseForm(bytes: Buffer): ParsedForm {
  const pairs = decodePairs(bytes)
  if (pairs === undefined) {
    const detail = 'The body must be a form encoded in UTF-8'
    const fault = { pointer: '', code: 'malformed-form', detail }
    return { entered: emptyForm, parsed: invalidRequest([fault]) }
  }
  const fields = new Map(pairs.map(([name, value]) => [name, value.trim()]))
  const entered = formOf(fields)
  if (fields.size < pairs.length)
    return { entered, parsed: invalidRequest([duplicateFault(pairs)]) }
  const filled = [...fields].filter(([name, value]) => value !== '' || !isFormField(name))
  const members = filled.map(([name, value]) => [name, memberOf(name, value)])
  return { entered, parsed: { value: Object.fromEntries(members) as unknown } }
}

/** Each field with its value, empty if it has none. */
function formOf(fields: ReadonlyMap<string, string>): HomeView['values'] {
  const entries = memberNames.map((name) => [name, fields.get(name) ?? ''])
  return Object.fromEntries(entries) as HomeView['values']
}

function decodePairs(bytes: Buffer): [string, string][] | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const decode = (encoded: string) => decodeURIComponent(encoded.replaceAll('+', ' '))
    return text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const [name, ...value] = pair.split('=')
        return [decode(name ?? ''), decode(value.join('='))]
      })
  } catch {
    return undefined // bytes or escapes that are not UTF-8
  }
}

function duplicateFault(pairs: readonly [string, string][]) {
  const names = pairs.map(([name]) => name)
  const name = names.find((candidate, i) => names.indexOf(candidate) !== i) ?? ''
  const detail = 'must not be given more than once'
  return { pointer: `/${escapePointer(name)}`, code: 'duplicate', detail }
}

/** The member of the API's body; forgives what people paste or omit, unlike the API. */
function memberOf(name: string, value: string): number | string {
  if (name === 'long_url' && bareLink.test(value)) return `https://${value}`
  const isNumber = isFormField(name) && formFields[name].isNumber === true
  return isNumber && /^[0-9]+(\.0+)?$/.test(value) ? Number(value) : value
}

function isFormField(name: string): name is FormField {
  return Object.hasOwn(formFields, name)
}

/** Where on the page to show a problem, and the messages. */
export function placeProblem(
  problem: Problem,
  entered: HomeView['values'],
): Pick<HomeView, 'faults' | 'message' | 'suggestion'> {
  if (problem.name === 'alias-taken') {
    const suggestion = similarAlias(entered.custom_alias)
    return { faults: { custom_alias: problem.detail }, suggestion }
  }
  const faults: Partial<Record<FormField, string>> = {}
  for (const { pointer, detail } of problem.errors ?? []) {
    const name = pointer.slice(1)
    if (isFormField(name)) faults[name] ??= `${formFields[name].subject} ${detail}`
  }
  return Object.keys(faults).length > 0 ? { faults } : { faults, message: problem.detail }
}

/** Characters of the alias that a suggestion keeps; a hyphen and two hexadecimal digits follow. */
const KEPT_LENGTH_MAX = 7

/** Another alias, which need not be available; page.js has the same function. */
function similarAlias(alias: string): string {
  const kept = alias.slice(0, KEPT_LENGTH_MAX).replace(/[-_]+$/, '')
  return `${kept}-${randomBytes(1).toString('hex')}`
}
