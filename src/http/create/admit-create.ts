// Admits a create or rejects it before its body is read: identifies the client by its API key,
// counts the request against the limits, and requires a key if the process is configured so.
import type { IncomingMessage } from 'node:http'
import type { ClientKeys } from '../../create/client-keys.ts'
import type { Limited, RequestLimits } from '../limit-requests.ts'
import type { Problem } from '../problem.ts'

/**
 * The limit that counted a create, with the creator of an admitted create, `null` without a key, or
 * with the reason why the create is rejected.
 */
export type Admission = { readonly limited: Limited } & (
  { readonly creatorId: bigint | null } | { readonly problem: Problem }
)

const keyRequired: Problem = {
  name: 'api-key-required',
  detail: 'The header X-API-Key must have a valid API key: it is absent, unknown or expired',
  headers: { 'WWW-Authenticate': 'ApiKey' },
}

/** Decides on a create. */
export function admitCreate(
  { keys, limits }: { readonly keys: ClientKeys; readonly limits: RequestLimits },
  req: IncomingMessage,
): Admission {
  const key = keys.find(req.headers['x-api-key'])
  const limited = limits.onCreate(req, key?.name)
  if (limited.problem !== undefined) return { limited, problem: limited.problem }
  if (key === undefined && keys.isRequired) return { limited, problem: keyRequired }
  return { limited, creatorId: key?.creatorId ?? null }
}
