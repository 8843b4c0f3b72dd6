// Parses RATELIMIT_DOMAINS: which namespaces may write RateLimitPolicies for which domain; `below`
// restricts them to policies with a given first entry. Every fault is one sentence with its place.
import * as z from 'zod'
import type { DomainGrant } from '../../policies/policy.ts'
import { NAMESPACES_MAX, POLICIES_BYTES_MAX, sharesOf } from '../../policies/shares.ts'
import { NAME_PATTERN } from '../settings.ts'

/** Grants, or the faults in them. */
export interface ParsedGrants {
  readonly grants: readonly DomainGrant[]
  readonly problems: readonly string[]
}

const GRANTS_MAX = 1000

const entry = z.strictObject({ key: z.string().min(1).max(256), value: z.string().min(1).max(512) })
const namespace = z.string().regex(NAME_PATTERN, 'must be the name of a namespace')
const grant = z.strictObject({
  domain: z.string().min(1).max(253),
  namespaces: z.array(namespace).min(1).max(NAMESPACES_MAX),
  below: entry.optional(),
  bytes: z.int().min(1000).max(POLICIES_BYTES_MAX).optional(),
  apiKeys: z.boolean().optional(),
})
const schema = z.array(grant).min(1).max(GRANTS_MAX)

/** Parses the value of RATELIMIT_DOMAINS. */
export function parseGrants(value: string): ParsedGrants {
  const json = parseJson(value)
  if ('problem' in json) return { grants: [], problems: [json.problem] }
  const parsed = schema.safeParse(json.value)
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      ({ path, message }) => `RATELIMIT_DOMAINS${placeOf(path)}: ${message}`,
    )
    return { grants: [], problems }
  }
  const grants = parsed.data.map(({ below, bytes, apiKeys, ...given }) => ({
    ...given,
    ...(below && { below }),
    ...(bytes !== undefined && { bytes }),
    ...(apiKeys && { apiKeys }),
  }))
  return { grants, problems: checkShares(grants) }
}

/** The namespaces of all grants, sorted. */
export function namespacesOf(grants: readonly DomainGrant[]): string[] {
  return [...new Set(grants.flatMap(({ namespaces }) => namespaces))].sort()
}

function checkShares(grants: readonly DomainGrant[]): string[] {
  const shares = sharesOf(grants)
  const { size } = shares
  const allowed = `at most ${NAMESPACES_MAX} namespaces are allowed`
  if (size > NAMESPACES_MAX) return [`RATELIMIT_DOMAINS contains ${size} namespaces: ${allowed}`]
  const sum = [...shares.values()].reduce((total, bytes) => total + bytes, 0)
  if (sum <= POLICIES_BYTES_MAX) return []
  const bound = `at most ${POLICIES_BYTES_MAX} are allowed: lower some "bytes"`
  return [`RATELIMIT_DOMAINS gives its ${size} namespaces ${sum} bytes of rules: ${bound}`]
}

function parseJson(value: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(value) as unknown }
  } catch (error) {
    return { problem: `RATELIMIT_DOMAINS must be JSON: ${(error as Error).message}` }
  }
}

function placeOf(path: readonly PropertyKey[]): string {
  return path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
}
