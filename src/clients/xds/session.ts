// The state machine of one xDS subscription, state of the world. Versions are applied one by one;
// while one is applied, only the newest of the later ones waits. Opens no connection.

/** The version and the nonce of a response, and the stream that it arrived on. */
export interface Received {
  readonly stream: number
  readonly version: string
  readonly nonce: string
}

/** The state of a subscription to responses of type `R`. */
export interface Session<R extends Received> {
  /** The open stream. */
  readonly stream: number | undefined
  /** The version of the last response that was applied; empty: none. */
  readonly lastGood: string
  readonly applying: R | undefined
  /** Whether `applying` has been rejected on its stream. */
  readonly isRetry: boolean
  /** The newest response that has arrived since `applying`. */
  readonly waiting: R | undefined
}

/** Why a response is rejected. */
export interface Rejection {
  readonly message: string
  /** Whether the same response may be applied later: it is retried until a newer one arrives. */
  readonly isRetryable: boolean
}

/** An event; streams have increasing numbers. */
export type SessionEvent<R extends Received> =
  | { readonly kind: 'opened'; readonly stream: number }
  | { readonly kind: 'closed'; readonly stream: number }
  | { readonly kind: 'received'; readonly response: R }
  /** The response in `applying` was applied, or, with an error, rejected as a whole. */
  | { readonly kind: 'applied'; readonly error: Rejection | undefined }

/** A request to send. */
interface SendAction {
  readonly kind: 'send'
  readonly stream: number
  /** Whether it is the first request of the stream, which accepts and rejects nothing. */
  readonly isFirst: boolean
  readonly version: string
  readonly nonce: string
  readonly error: string | undefined
}

/** What to do after an event. */
export type SessionAction<R extends Received> =
  SendAction | { readonly kind: 'apply'; readonly response: R }

/** The result of an event. */
export interface SessionStep<R extends Received> {
  readonly session: Session<R>
  readonly actions: readonly SessionAction<R>[]
}

/** A subscription without a stream. */
export const newSession: Session<never> = {
  stream: undefined,
  lastGood: '',
  applying: undefined,
  isRetry: false,
  waiting: undefined,
}

/** The next state, and the actions. Throws for `applied` if no response is being applied. */
export function stepSession<R extends Received>(
  session: Session<R>,
  event: SessionEvent<R>,
): SessionStep<R> {
  switch (event.kind) {
    case 'opened': {
      const { stream } = event
      // Has no version, because a control plane may count from 1 after its restart: a request
      // with the number of the newest version would not get that version.
      const first = { isFirst: true, version: '', nonce: '', error: undefined }
      return { session: { ...session, stream }, actions: [{ kind: 'send', stream, ...first }] }
    }
    case 'closed': {
      const isOpen = session.stream === event.stream
      return { session: isOpen ? { ...session, stream: undefined } : session, actions: [] }
    }
    case 'received':
      return receive(session, event.response)
    case 'applied':
      return finish(session, event.error)
  }
}

function receive<R extends Received>(session: Session<R>, response: R): SessionStep<R> {
  if (response.stream !== session.stream) return { session, actions: [] }
  if (session.applying !== undefined) {
    return { session: { ...session, waiting: response }, actions: [] }
  }
  return {
    session: { ...session, applying: response },
    actions: [{ kind: 'apply', response }],
  }
}

function finish<R extends Received>(
  session: Session<R>,
  error: Rejection | undefined,
): SessionStep<R> {
  const { applying: applied, waiting, stream, isRetry } = session
  if (applied === undefined) throw new Error('Cannot finish: no response is being applied')
  const lastGood = error === undefined ? applied.version : session.lastGood
  const next = { stream, lastGood, applying: waiting, isRetry: false, waiting: undefined }
  // Only the newest response of the open stream is acknowledged; its nonce replaces earlier ones.
  if (waiting !== undefined) {
    return { session: next, actions: [{ kind: 'apply', response: waiting }] }
  }
  if (applied.stream !== stream) return { session: next, actions: [] }
  const { nonce } = applied
  const acknowledgement = { isFirst: false, version: lastGood, nonce, error: error?.message }
  const send = { kind: 'send', stream, ...acknowledgement } as const
  if (error?.isRetryable !== true) return { session: next, actions: [send] }
  const retry = { kind: 'apply', response: applied } as const
  return {
    session: { ...next, applying: applied, isRetry: true },
    actions: isRetry ? [retry] : [send, retry],
  }
}
