// A client of the admin API of a running process, for the operator's commands.
import * as z from 'zod'
import { OperatorError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'

/** How to reach the admin API, or another API that operators use. */
export interface AdminTarget {
  readonly url: string
  readonly token: string | undefined
  /** The name of the operator in the audit log. */
  readonly operator?: string | undefined
  /** Its name in errors. @default 'the admin API' */
  readonly name?: string
  /** The setting that contains the URL. @default 'ADMIN_URL' */
  readonly setting?: string
}

const ADMIN_API = 'the admin API'
const URL_SETTING = 'ADMIN_URL'
/** Longer than a change takes if every attempt of its statements times out. */
const RESPONSE_MS_MAX = 15_000
const problemShape = z.object({ detail: z.string() })
/** Responses of an admin API, or of a proxy before it, to a request that may succeed on retry. */
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504])

/** The API did not respond, or responded that it is unavailable: a retry may succeed. */
export class UnavailableError extends OperatorError {
  /** The status of the response, if there was one. */
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** The API rejected the request with a problem document, such as a 404. */
export class ProblemError extends OperatorError {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** The API did not respond to a change within the timeout: the change may have been applied. */
class ChangeTimeoutError extends UnavailableError {}

/** One request to the admin API. */
export interface AdminRequest {
  readonly method: string
  readonly path: string
  /** A body of JSON lines. */
  readonly ndjson?: string
}

/**
 * Sends a request; resolves to the JSON of the response (`undefined` for 204), checked against
 * `shape`. Throws OperatorError: UnavailableError if a retry may succeed, ProblemError for another
 * problem document.
 */
export async function callAdminApi<T>(
  target: AdminTarget,
  request: AdminRequest,
  shape: z.ZodType<T>,
): Promise<T> {
  const { method, path } = request
  const { ok, status, responseText } = await exchange(target, request)
  const body = status === 204 ? undefined : parseJson(responseText)
  const { url, name = ADMIN_API, setting = URL_SETTING } = target
  const parsed = shape.safeParse(body)
  if (ok && parsed.success) return parsed.data
  const problem = problemShape.safeParse(body)
  const detail =
    !ok && problem.success
      ? `: ${problem.data.detail}`
      : `, but the response is not from ${name} of Curtail: check ${setting}, ${url}`
  const message = `${method} ${path} returned ${status}${detail}`
  if (UNAVAILABLE.has(status)) throw new UnavailableError(message, status)
  if (!ok && problem.success) throw new ProblemError(message, status)
  throw new OperatorError(message)
}

/** The same, for a command that sends the request once: the command can be retried. */
export async function callAdminApiOnce<T>(...call: Parameters<typeof callAdminApi<T>>): Promise<T> {
  try {
    return await callAdminApi(...call)
  } catch (error) {
    if (!(error instanceof ChangeTimeoutError)) throw error
    throw new OperatorError(`${error.message}: retry the command`)
  }
}

async function exchange(
  target: AdminTarget,
  { method, path, ndjson: body }: AdminRequest,
): Promise<{ ok: boolean; status: number; responseText: string }> {
  const headers = {
    ...(target.token !== undefined && { Authorization: `Bearer ${target.token}` }),
    ...(target.operator !== undefined && { 'X-Operator': target.operator }),
    ...(body !== undefined && { 'Content-Type': 'application/x-ndjson' }),
  }
  const init = { method, headers, ...(body !== undefined && { body }) }
  const signal = AbortSignal.timeout(RESPONSE_MS_MAX)
  try {
    const response = await fetch(new URL(path, target.url), { ...init, signal })
    return { ok: response.ok, status: response.status, responseText: await response.text() }
  } catch (error) {
    const { url, name = ADMIN_API, setting = URL_SETTING } = target
    if (signal.aborted) {
      const message = `${name} at ${url} did not respond within ${RESPONSE_MS_MAX / 1000} s`
      if (method === 'GET') throw new UnavailableError(message)
      throw new ChangeTimeoutError(`${message}; the change may have been applied`)
    }
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new UnavailableError(
      `cannot reach ${name} at ${url} (${messageOf(cause)}): check ${setting}`,
    )
  }
}

/** Parses JSON; returns `text` itself if it is not JSON: the admin API did not send it. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
