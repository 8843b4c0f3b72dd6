// The body of a create request: one schema both validates and documents it.
import * as z from 'zod'
import { aliasFault } from '../../links/alias.ts'
import { TTL_DAYS_MAX } from '../../links/expiry.ts'
import { parseTargetUrl, TARGET_LENGTH_MAX, type TargetFault } from '../../links/target-url.ts'
import { type BodyRule, invalidBody } from '../field-faults.ts'
import type { Problem } from '../problem.ts'

const aliasAllowed =
  'must be 1 to 10 of the characters 0-9, A-Z, a-z, _ and -, ' + 'and not a reserved word'
const ttlAllowed = `must be an integer from 1 to ${TTL_DAYS_MAX}`
const stringAllowed = 'must be a string'
const urlKind = 'an absolute http:// or https:// URL'
const urlAllowed = `must be ${urlKind} of at most ${TARGET_LENGTH_MAX} characters`

const urlFaults: Readonly<Record<TargetFault, string>> = {
  'too-long': `${urlAllowed}: this one is longer, as sent or as it would be stored`,
  'surrounding-space': 'must not start or end with white space or a control character',
  'not-absolute-http': urlAllowed,
  'not-a-url': `${urlAllowed}: this one has no host or cannot be parsed`,
  credentials: 'must not contain a user name or password',
  'own-host': 'must not point to this service: a short link never points to a short link',
}

/** The schema of the body, given the service's own hosts. */
export function createBodySchema(ownHosts: ReadonlySet<string>) {
  return z
    .strictObject({
      long_url: z
        .string({ error: stringAllowed })
        .transform((value, context) => {
          const parsed = parseTargetUrl(value, ownHosts)
          if ('longUrl' in parsed) return parsed.longUrl
          context.addIssue({
            code: 'custom',
            message: urlFaults[parsed.fault],
            params: { fault: parsed.fault },
          })
          return z.NEVER
        })
        .meta({
          description:
            `Target of the link. It ${urlAllowed}, without user name or password, and not on one ` +
            `of this service's own hosts. Stored exactly as sent if all characters are visible ` +
            'ASCII, otherwise as serialised by the WHATWG URL parser.',
          maxLength: TARGET_LENGTH_MAX,
          examples: ['https://example.com/a/long/path?with=a#fragment'],
        }),
      custom_alias: z
        .string({ error: stringAllowed })
        .superRefine((alias, context) => {
          const fault = aliasFault(alias)
          if (fault !== undefined) {
            context.addIssue({ code: 'custom', message: aliasAllowed, params: { fault } })
          }
        })
        .nullish()
        .meta({
          description:
            `The code to use instead of a generated one. It ${aliasAllowed}. Case-sensitive. ` +
            'null means absent.',
          pattern: '^[0-9A-Za-z_-]{1,10}$',
          examples: ['spring-26'],
        }),
      ttl_days: z
        .int({ error: ttlAllowed })
        .min(1, { error: ttlAllowed })
        .max(TTL_DAYS_MAX, { error: ttlAllowed })
        .nullish()
        .meta({
          description:
            'Life of the link in days of 86,400 seconds; without it the link never expires. ' +
            'null means absent.',
          examples: [30],
        }),
    })
    .meta({ id: 'CreateLink', description: 'A link to create. Other members are rejected.' })
}

/** A valid body. */
export type CreateBody = z.output<ReturnType<typeof createBodySchema>>

/** A validated body, or the problem to respond with. */
export type ParsedBody = { readonly body: CreateBody } | { readonly problem: Problem }

/** The members of the body, in the order of the schema. */
export const memberNames = Object.keys(createBodySchema(new Set()).shape) as (keyof CreateBody)[]
const rule: BodyRule = {
  members: memberNames,
  body: 'The body must be a JSON object with the member long_url',
}

/** Validates a value, from JSON or from a form. */
export function parseCreateBody(
  schema: ReturnType<typeof createBodySchema>,
  value: unknown,
): ParsedBody {
  const parsed = schema.safeParse(value, { reportInput: true })
  return parsed.success
    ? { body: parsed.data }
    : { problem: invalidBody(parsed.error.issues, rule) }
}
