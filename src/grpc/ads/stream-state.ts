// The state machine of one stream of aggregated discovery on the server: one version is in flight,
// and only the newest published one waits. Sends nothing itself.

/** A version that can be sent; its nonce differs from those of all other versions. */
export interface SendableVersion {
  readonly version: string
  readonly nonce: string
}

/**
 * A version that was sent, until it is written completely and the client has accepted or rejected
 * it.
 */
interface InFlight<V> {
  readonly version: V
  /** Whether the connection has taken all of its bytes. */
  readonly isWritten: boolean
  /** Whether the client has accepted or rejected it. */
  readonly isSettled: boolean
}

/** The state of a stream to which versions of type `V` are sent. */
export interface StreamState<V extends SendableVersion> {
  /** Whether the client has subscribed to the rules. */
  readonly isSubscribed: boolean
  /** The newest published version. */
  readonly newest: V | undefined
  readonly inFlight: InFlight<V> | undefined
  /** The version that the client accepted last on this stream; empty: none. */
  readonly active: string
  /** The version settled last, if the client rejected it; the client may still accept it. */
  readonly rejected: RejectedVersion | undefined
}

/** A version that the client rejected. */
interface RejectedVersion extends SendableVersion {
  readonly message: string
}

/** An event of a stream. */
export type StreamEvent<V extends SendableVersion> =
  | { readonly kind: 'published'; readonly version: V }
  /** A request for the rules; `error`: why the client rejects the version with this nonce. */
  | {
      readonly kind: 'request'
      readonly version: string
      readonly nonce: string
      readonly error: string | undefined
    }
  /** All bytes of the version in flight are written. */
  | { readonly kind: 'written' }

/** The result of an event. */
export interface StreamStep<V extends SendableVersion> {
  readonly state: StreamState<V>
  /** The version to send. */
  readonly send: V | undefined
  /** Whether the event was a request that neither subscribes nor settles a version. */
  readonly isUnproductive: boolean
}

/** The state of a stream that has just been opened. */
export function newStreamState<V extends SendableVersion>(newest: V | undefined): StreamState<V> {
  return { isSubscribed: false, newest, inFlight: undefined, active: '', rejected: undefined }
}

/** The next state, and the version to send. */
export function stepStream<V extends SendableVersion>(
  state: StreamState<V>,
  event: StreamEvent<V>,
): StreamStep<V> {
  switch (event.kind) {
    case 'published':
      return sendNext({ ...state, newest: event.version })
    case 'written': {
      const inFlight = state.inFlight && { ...state.inFlight, isWritten: true }
      return sendNext({ ...state, inFlight })
    }
    case 'request': {
      // A nonce in the first request comes from an earlier stream.
      if (!state.isSubscribed) return sendNext({ ...state, isSubscribed: true })
      const { inFlight, rejected } = state
      if (inFlight?.version.nonce === event.nonce && !inFlight.isSettled) {
        const settled = { ...state, inFlight: { ...inFlight, isSettled: true } }
        return sendNext({ ...settled, ...resultOf(inFlight.version, event) })
      }
      // A limiter retries a version that it rejected for a reason other than its content.
      const retried = rejected?.nonce === event.nonce ? resultOf(rejected, event) : undefined
      if (retried !== undefined && retried.rejected === undefined) {
        return sendNext({ ...state, ...retried })
      }
      return { state: { ...state, ...retried }, send: undefined, isUnproductive: true }
    }
  }
}

/** An acceptance names the accepted version; anything else is a rejection. */
function resultOf(
  { version, nonce }: SendableVersion,
  request: { readonly version: string; readonly error: string | undefined },
): Partial<Pick<StreamState<never>, 'active' | 'rejected'>> {
  const { error } = request
  if (error === undefined && request.version === version) {
    return { active: version, rejected: undefined }
  }
  const message = error ?? `the client acknowledged the version '${request.version}' instead`
  return { rejected: { version, nonce, message } }
}

/**
 * Sends the newest version, unless a version is in flight or the client has already accepted or
 * rejected the newest one. The active version is also sent after a rejection, so that the client
 * does not retry the rejected one.
 */
function sendNext<V extends SendableVersion>(state: StreamState<V>): StreamStep<V> {
  const { isSubscribed, newest, inFlight: last, active, rejected } = state
  const isPending = last !== undefined && !(last.isWritten && last.isSettled)
  if (isPending) return { state, send: undefined, isUnproductive: false }
  const isSettled = newest?.version === (rejected?.version ?? active)
  const send = isSubscribed && !isSettled ? newest : undefined
  const inFlight = send && { version: send, isWritten: false, isSettled: false }
  return { state: { ...state, inFlight }, send, isUnproductive: false }
}
