// The violated rules of a body, as `invalid-request` lists them, from the issues of its schema.
import type * as z from 'zod'
import type { FieldFault, Problem } from './problem.ts'

/** What is allowed in a body, for the details of its faults. */
export interface BodyRule {
  /** The names of the allowed members. */
  readonly members: readonly string[]
  /** What the body itself must be, as a complete sentence. */
  readonly body: string
}

/** Faults reported for one request; the rest is omitted. */
const FAULTS_MAX = 20
/** Characters of an unknown member name that are reported. */
const NAME_LENGTH_MAX = 40
const list = new Intl.ListFormat('en-GB')

/** The problem for a body with these issues, which the schema has found with `reportInput`. */
export function invalidBody(issues: readonly z.core.$ZodIssue[], rule: BodyRule): Problem {
  const errors = issues.flatMap((issue) => faultsOf(issue, rule)).slice(0, FAULTS_MAX)
  return invalidRequest(errors, rule.members)
}

/** The problem for a request with these faults. */
export function invalidRequest(
  errors: readonly FieldFault[],
  members: readonly string[] = [],
): Problem {
  const first = errors[0]
  const detail = first === undefined ? 'The request violates a rule' : sentenceOf(first, members)
  return { name: 'invalid-request', detail, errors }
}

/** A fault as a complete sentence; the detail of an empty pointer is complete already. */
function sentenceOf({ pointer, detail }: FieldFault, members: readonly string[]): string {
  if (pointer === '') return detail
  const name = pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')
  if (members.includes(name)) return `${name} ${detail}`
  const truncated = name.length > NAME_LENGTH_MAX ? `${name.slice(0, NAME_LENGTH_MAX)}…` : name
  return `The member ${JSON.stringify(truncated.toWellFormed())} ${detail}`
}

function faultsOf(issue: z.core.$ZodIssue, { members, body }: BodyRule): FieldFault[] {
  const pointer = issue.path.map((segment) => `/${escapePointer(String(segment))}`).join('')
  if (issue.code === 'unrecognized_keys') {
    const detail = `is unknown: allowed are ${list.format(members)}`
    return issue.keys.map((key) => ({
      pointer: `/${escapePointer(key)}`,
      code: 'unknown-field',
      detail,
    }))
  }
  if (issue.code === 'custom') {
    const fault: unknown = issue.params?.['fault']
    return [{ pointer, code: typeof fault === 'string' ? fault : 'invalid', detail: issue.message }]
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) {
    return [{ pointer, code: 'required', detail: 'is required' }]
  }
  const isOutOfRange = issue.code === 'too_small' || issue.code === 'too_big'
  const code = isOutOfRange ? 'out-of-range' : 'invalid-type'
  return [{ pointer, code, detail: pointer === '' ? body : issue.message }]
}

/** Escapes the name of a member for a JSON pointer. */
export function escapePointer(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1')
}
