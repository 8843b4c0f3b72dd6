// A link in transfer: one record of an export or an import, in the admin API's format of a link.
import * as z from 'zod'
import { utcTimeOf } from './utc-time.ts'

/** Maximum length of a code of another shortener, in characters. */
const FOREIGN_CODE_LENGTH_MAX = 255

const codeAllowed = `short_code must be a string of 1 to ${FOREIGN_CODE_LENGTH_MAX} characters`
const timeAllowed = 'must be a time such as 2026-01-31T12:00:00Z, or null (in a CSV file: empty)'
const creatorAllowed = 'creator_id must be a 64-bit integer as a decimal string, or null'
const states = ['active', 'expired', 'disabled', 'deleted'] as const

const timeOf = (name: string) => {
  const error = `${name} ${timeAllowed}`
  return z
    .string({ error })
    .nullish()
    .transform((value, context) => {
      if (value == null) return null
      const time = utcTimeOf(value)
      if (time !== undefined) return time
      context.addIssue({ code: 'custom', message: error })
      return z.NEVER
    })
}

const creatorId = z
  .string({ error: creatorAllowed })
  .regex(/^-?\d{1,19}$/, { error: creatorAllowed, abort: true })
  .refine((value) => BigInt.asIntN(64, BigInt(value)) === BigInt(value), { error: creatorAllowed })

const rowShape = z
  .strictObject(
    {
      short_code: z
        .string({ error: codeAllowed })
        .min(1, { error: codeAllowed })
        .max(FOREIGN_CODE_LENGTH_MAX, { error: codeAllowed }),
      long_url: z.string({ error: 'long_url must be a string' }).nullish(),
      created_at: timeOf('created_at'),
      expires_at: timeOf('expires_at'),
      creator_id: creatorId.nullish(),
      state: z.enum(states, { error: `state must be one of ${states.join(', ')}` }).nullish(),
      target_blocked: z.boolean({ error: 'target_blocked must be true or false' }).optional(),
    },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys'
          ? `the member ${JSON.stringify(issue.keys[0])} is unknown`
          : 'a row must be a JSON object',
    },
  )
  .transform((row) => {
    // Without `target_blocked`: this service's own list decides which targets are blocked.
    const { short_code, long_url = null, created_at, expires_at, creator_id = null } = row
    return {
      short_code,
      long_url,
      created_at,
      expires_at,
      creator_id,
      state: row.state ?? 'active',
    }
  })

/** A row; its times are RFC 3339 in UTC with milliseconds, or `null`. */
export type LinkRow = z.output<typeof rowShape>

/** Validates the structure of a row, not its target or its code; returns why it is invalid. */
export function parseLinkRow(value: unknown): { row: LinkRow } | { fault: string } {
  const parsed = rowShape.safeParse(value)
  if (parsed.success) return { row: parsed.data }
  return { fault: parsed.error.issues[0]?.message ?? 'the row is invalid' }
}

/** The code in an invalid row, if it has one. */
export function codeIn(value: unknown): string | null {
  const hasCode = typeof value === 'object' && value !== null && 'short_code' in value
  const code = hasCode ? value.short_code : undefined
  return typeof code === 'string' ? code.slice(0, FOREIGN_CODE_LENGTH_MAX) : null
}
