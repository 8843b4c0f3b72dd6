// The one error of calls to the API server: what it answered, or that it did not.

/** How a call failed. */
export interface KubeFailure {
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number
  /** The API's word for it, such as `AlreadyExists`; ours are `Unreachable`, `Late`, `Torn`. */
  readonly reason: string
  /** How long to wait before the next call, where the server says so. */
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

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
    this.retryAfterMs = failure.retryAfterMs
  }
}

/** Whether `error` is an answer of this status. */
export function isStatus(error: unknown, status: number): boolean {
  return error instanceof KubeError && error.status === status
}

/** A `Status` document as an error; `status` where the document has no code of its own. */
export function errorOfStatus(
  document: unknown,
  given: { status: number; retryAfterMs?: number | undefined },
): KubeError {
  const said = (typeof document === 'object' && document !== null ? document : {}) as {
    readonly code?: unknown
    readonly reason?: unknown
    readonly message?: unknown
    readonly details?: { readonly retryAfterSeconds?: unknown } | null
  }
  const status = typeof said.code === 'number' ? said.code : given.status
  const seconds = said.details?.retryAfterSeconds
  const reason = typeof said.reason === 'string' ? said.reason : 'Unknown'
  const message = typeof said.message === 'string' ? said.message : `the API answered ${status}`
  return new KubeError(message, {
    status,
    reason,
    retryAfterMs: given.retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : undefined),
  })
}
