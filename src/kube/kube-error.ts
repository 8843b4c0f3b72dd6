// The single error type of calls to the API server: an error response, or no response.

/** How a call failed. */
export interface KubeFailure {
  /** The HTTP status; 0 if there was no valid response. */
  readonly status: number
  /**
   * The API's reason, such as `AlreadyExists`, or one of ours: `Unreachable` (also if the call was
   * aborted), `Timeout` (with status 0; the API has the same reason), `InvalidResponse`,
   * `RelistRequired` (an error within a watch), `TooManyObjects`, `Aborted` (a list), `NotLeading`,
   * `Unknown`.
   */
  readonly reason: string
  /** The delay before the next call, if the server sent one; the error limits it to a minute. */
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** Maximum delay that a server can request. */
const RETRY_AFTER_MS_MAX = 60_000

/** A call to the API server failed. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly status: number
  readonly reason: string
  readonly retryAfterMs: number | undefined

  constructor(message: string, failure: KubeFailure) {
    super(message, { cause: failure.cause })
    this.status = failure.status
    this.reason = failure.reason
    const { retryAfterMs } = failure
    this.retryAfterMs = retryAfterMs && Math.min(retryAfterMs, RETRY_AFTER_MS_MAX)
  }
}

/** Whether `error` is a response with this status. */
export function hasStatus(error: unknown, status: number): boolean {
  return error instanceof KubeError && error.status === status
}

/** Converts a `Status` document to an error; its fields take precedence over `response.status`. */
export function errorOfStatus(
  document: unknown,
  response: { status: number; retryAfterMs?: number | undefined },
): KubeError {
  const body = (typeof document === 'object' && document !== null ? document : {}) as {
    readonly code?: unknown
    readonly reason?: unknown
    readonly message?: unknown
    readonly details?: { readonly retryAfterSeconds?: unknown } | null
  }
  const status = typeof body.code === 'number' ? body.code : response.status
  const seconds = body.details?.retryAfterSeconds
  const reason = typeof body.reason === 'string' ? body.reason : 'Unknown'
  const message =
    typeof body.message === 'string' ? body.message : `the API server returned ${status}`
  return new KubeError(message, {
    status,
    reason,
    retryAfterMs:
      response.retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : undefined),
  })
}
