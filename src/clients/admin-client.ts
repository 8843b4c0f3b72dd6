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
  /** The name of the API in errors. @default 'the admin API' */
  readonly name?: string
  /** The setting that contains the URL. @default 'ADMIN_URL' */
  readonly setting?: string
}

const ADMIN_API = 'the admin API'
const URL_SETTING = 'ADMIN_URL'
/** Longer than a change takes if every attempt of its statements times out. */
const RESPONSE_MS_MAX = 15_000
const problemShape = z.object({ detail: z.string() })
/** Statuses of an admin API, or of a proxy before it, after which a retry may succeed. */
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504])
/** Error codes of a connection that was opened, and then closed. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
const failureShape = z.object({ cause: z.object({ code: z.string() }) })
const LOCATION_LENGTH_MAX = 200

/** The API did not respond, or responded that it is unavailable: a retry may succeed. */
export class UnavailableError extends OperatorError {
  /** The status of the response, if there was one. */
  readonly status: number | undefined
  /** Whether the API possibly received the request. */
  readonly isSent: boolean

  constructor(message: string, cause: { readonly status?: number; readonly isSent: boolean }) {
    super(message)
    this.status = cause.status
    this.isSent = cause.isSent
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
  readonly headers?: Readonly<Record<string, string>>
  /** A body of JSON lines. */
  readonly ndjson?: string
  /** A body of JSON. */
  readonly json?: object
  /** How long to wait for the response, in milliseconds. @default 15_000 */
  readonly msMax?: number
  /** Whether a timeout error warns that the change may have been applied. @default not for GET */
  readonly isChange?: boolean
  /** Called with the headers of the response if it is a success. */
  readonly onHeaders?: (headers: Headers) => void
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
  const { method, path, onHeaders } = request
  const { ok, status, headers, location, responseText } = await exchange(target, request)
  const body = status === 204 ? undefined : parseJson(responseText)
  const { url, name = ADMIN_API, setting = URL_SETTING } = target
  const parsed = shape.safeParse(body)
  if (ok && parsed.success) {
    onHeaders?.(headers)
    return parsed.data
  }
  const problem = problemShape.safeParse(body)
  const fault =
    location === undefined
      ? `but the response is not from ${name} of Curtail`
      : `but redirects to ${location} are not followed`
  const detail =
    !ok && problem.success ? `: ${problem.data.detail}` : `, ${fault}: check ${setting}, ${url}`
  const message = `${method} ${path} returned ${status}${detail}`
  if (UNAVAILABLE.has(status)) throw new UnavailableError(message, { status, isSent: true })
  if (!ok && problem.success) throw new ProblemError(message, status)
  throw new OperatorError(message)
}

/** Like `callAdminApi`, for a caller without retries: a timeout of a change suggests a retry. */
export async function callAdminApiOnce<T>(...call: Parameters<typeof callAdminApi<T>>): Promise<T> {
  try {
    return await callAdminApi(...call)
  } catch (error) {
    if (!(error instanceof ChangeTimeoutError)) throw error
    throw new OperatorError(`${error.message}: retry the command`)
  }
}

/** The response to a request. */
interface Exchanged {
  readonly ok: boolean
  readonly status: number
  readonly headers: Headers
  /** Where a redirect leads, quoted. */
  readonly location: string | undefined
  readonly responseText: string
}

/** A redirect is not followed: another server would receive the token or API key. */
async function exchange(target: AdminTarget, request: AdminRequest): Promise<Exchanged> {
  const { method, path, msMax = RESPONSE_MS_MAX } = request
  const { body, type } = bodyOf(request)
  const sent = {
    ...request.headers,
    ...(target.token !== undefined && { Authorization: `Bearer ${target.token}` }),
    ...(target.operator !== undefined && { 'X-Operator': target.operator }),
    ...(body !== undefined && { 'Content-Type': type }),
  }
  const init = {
    method,
    headers: sent,
    redirect: 'manual',
    ...(body !== undefined && { body }),
  } as const
  const signal = AbortSignal.timeout(msMax)
  try {
    const response = await fetch(new URL(path, target.url), { ...init, signal })
    const { ok, status, headers } = response
    const location = locationOf(response)
    return { ok, status, headers, location, responseText: await response.text() }
  } catch (error) {
    throw signal.aborted ? timeoutOf(target, request, msMax) : connectionFault(target, error)
  }
}

function timeoutOf(
  { url, name = ADMIN_API }: AdminTarget,
  { method, isChange = method !== 'GET' }: AdminRequest,
  msMax: number,
): UnavailableError {
  const message = `${name} at ${url} did not respond within ${msMax / 1000} s`
  if (!isChange) return new UnavailableError(message, { isSent: true })
  return new ChangeTimeoutError(`${message}; the change may have been applied`, { isSent: true })
}

function connectionFault(
  { url, name = ADMIN_API, setting = URL_SETTING }: AdminTarget,
  error: unknown,
): UnavailableError {
  const parsed = failureShape.safeParse(error)
  const code = parsed.success ? parsed.data.cause.code : ''
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = messageOf(cause) || code // the failure of several addresses has no message
  const message = `cannot reach ${name} at ${url} (${reason}): check ${setting}`
  return new UnavailableError(message, { isSent: CLOSED.has(code) })
}

function locationOf({ status, headers }: Response): string | undefined {
  const location = headers.get('location')
  if (status < 300 || status > 399 || location === null) return undefined
  return JSON.stringify(location.slice(0, LOCATION_LENGTH_MAX))
}

function bodyOf({ ndjson, json }: AdminRequest): { body?: string | undefined; type: string } {
  if (json === undefined) return { body: ndjson, type: 'application/x-ndjson' }
  return { body: JSON.stringify(json), type: 'application/json' }
}

/** Parses JSON; returns `text` itself if it is not JSON, so not from the admin API. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
