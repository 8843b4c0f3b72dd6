// Creates a short link through the public API, as a client.
import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { OperatorError } from '../process/role.ts'
import { type AdminTarget, callAdminApi, ProblemError, UnavailableError } from './admin-client.ts'
import { linkShape } from './link-shape.ts'
import { createRetry } from './retry-unavailable.ts'

const createdShape = z.object({ short_url: z.url(), expires_at: z.string().nullable() })

/** How long the check of the creator may delay the command. */
const CHECK_MS_MAX = 2000

/** The response of the API. */
export type CreatedLink = z.output<typeof createdShape>

/** How to reach the API. */
interface ApiTarget {
  readonly url: string
  readonly apiKey: string | undefined
  /** Stops the retries. */
  readonly signal: AbortSignal
  readonly onRetry: (cause: UnavailableError) => void
}

/** The link to create; the service checks it. */
interface WantedLink {
  readonly longUrl: string
  readonly alias: string | undefined
  readonly ttlDays: number | undefined
}

/** What to do about a problem, by the status of the response. */
const hints: Readonly<Record<number, string>> = {
  401: 'set API_KEY, or the file of API_KEY_FILE, to a valid API key of the service',
  409: 'use another --alias, or none',
  422: 'correct the arguments',
  429: 'retry later',
}

/**
 * Creates the link. While the service is unavailable, the create is retried with the same
 * Idempotency-Key, so that it creates at most one link. Throws OperatorError, which reports whether
 * an attempt may have created the link.
 */
export async function createLink(
  { url, apiKey, signal, onRetry }: ApiTarget,
  { longUrl, alias, ttlDays }: WantedLink,
): Promise<CreatedLink> {
  const target = { url, token: undefined, name: 'the API', setting: 'API_URL' }
  const headers = {
    'Idempotency-Key': randomUUID(),
    ...(apiKey !== undefined && { 'X-API-Key': apiKey }),
  }
  const json = {
    long_url: longUrl,
    ...(alias !== undefined && { custom_alias: alias }),
    ...(ttlDays !== undefined && { ttl_days: ttlDays }),
  }
  const request = { method: 'POST', path: '/v1/urls', headers, json, isChange: false }
  const causes: unknown[] = []
  const retry = createRetry({
    signal,
    isReachedIfSent: true,
    onRetry: (cause) => {
      causes.push(cause)
      onRetry(cause)
    },
  })
  try {
    return await retry(() => callAdminApi(target, request, createdShape))
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    const isSent = [...causes, error].some((one) => one instanceof UnavailableError && one.isSent)
    throw new OperatorError(`${describe(error)}${isSent ? UNKNOWN_OUTCOME : ''}`)
  }
}

/**
 * Whether the admin API shows that a new link has no creator. `false` if the admin API is
 * unavailable or belongs to another service: not every client has access to it.
 */
export async function hasNoCreator(
  admin: AdminTarget,
  { short_url, longUrl }: CreatedLink & { readonly longUrl: string },
): Promise<boolean> {
  const code = new URL(short_url).pathname.split('/').at(-1) ?? ''
  const request = { method: 'GET', path: `/admin/links/${code}`, msMax: CHECK_MS_MAX }
  try {
    const { creator_id, long_url } = await callAdminApi(admin, request, linkShape)
    return creator_id === null && long_url === longUrl
  } catch (error) {
    if (error instanceof OperatorError) return false
    throw error
  }
}

const UNKNOWN_OUTCOME = '; the link may have been created'

function describe(error: OperatorError): string {
  if (!(error instanceof ProblemError)) return error.message
  const hint = hints[error.status]
  const suffix = hint === undefined ? '' : `; ${hint}`
  return `Cannot create the link: ${error.message}${suffix}`
}
