// A model of an xDS server and of streams that open and close at any time, around the real state
// machine of the subscription.
import {
  newSession,
  type Received,
  type Session,
  type SessionAction,
  type SessionEvent,
  type SessionStep,
  stepSession,
} from '../../src/clients/xds/session.ts'
import type { Model } from './explore.ts'

/** A response; a bad one is rejected, a good one may fail several times before it is applied. */
interface ModelResponse extends Received {
  /** Increases with each response. */
  readonly order: number
  readonly isGood: boolean
}

/** The subscription, the server, and the violations so far. */
export interface XdsState {
  readonly session: Session<ModelResponse>
  readonly streams: number
  readonly isOpen: boolean
  readonly sent: readonly ModelResponse[]
  /** The version that is active, by the results of `apply`. */
  readonly active: string
  /** The order of the last response that was applied or rejected. */
  readonly lastApplied: number
  /** The last nonce that the open stream acknowledged. */
  readonly acknowledged: string
  /** The last result that the open stream sent, with its nonce. */
  readonly result: string
  readonly problems: readonly string[]
}

/** The function under test, or a mutant. */
export type Step = (
  session: Session<ModelResponse>,
  event: SessionEvent<ModelResponse>,
) => SessionStep<ModelResponse>

/** The invariants, by the message that reports a violation. */
export const broken = {
  foreignNonce: 'a request has a nonce of another stream',
  wrongVersion: 'the version of a request is not the active one, or that of a first one not empty',
  wrongOrder: 'an older response was applied after a newer one',
  concurrent: 'two responses were applied at once',
  unacknowledged: 'the newest response is neither accepted nor rejected',
  repeated: 'a response is accepted or rejected twice',
  notRetried: 'the newest response is good, but it is neither active nor retried',
  notApplied: 'nothing is being applied, but the newest response was never applied',
} as const

const OPENED_MAX = 3
const RESPONSES_MAX = 4

/** The model: every interleaving of responses, their results, and streams. */
export function xdsModel(step: Step = stepSession): Model<XdsState> {
  return {
    initial: {
      session: newSession,
      streams: 0,
      isOpen: false,
      sent: [],
      active: '',
      lastApplied: 0,
      acknowledged: '',
      result: '',
      problems: [],
    },
    apply: () => {
      throw new Error('the model has no processes')
    },
    finish: (state) => state,
    events: (state) => eventsOf(state, step),
    broken: (state) => [...state.problems, ...unacknowledgedIn(state)],
  }
}

function eventsOf(state: XdsState, step: Step) {
  const { session, streams, isOpen, sent } = state
  const events: { label: string; state: XdsState }[] = []
  if (isOpen) {
    const closed = { ...state, isOpen: false, acknowledged: '', result: '' }
    const event = { kind: 'closed', stream: streams } as const
    events.push({ label: 'close', state: dispatch(closed, event, step) })
  } else if (streams < OPENED_MAX) {
    const opened = { ...state, isOpen: true, streams: streams + 1 }
    const event = { kind: 'opened', stream: streams + 1 } as const
    events.push({ label: 'open', state: dispatch(opened, event, step) })
  }
  if (isOpen && sent.length < RESPONSES_MAX) {
    for (const isGood of [true, false]) {
      const order = sent.length + 1
      const id = String(order)
      const response = { stream: streams, version: `v${id}`, nonce: `n${id}`, order, isGood }
      const received = { ...state, sent: [...sent, response] }
      const label = `${isGood ? 'good' : 'bad'} response ${id}`
      events.push({ label, state: dispatch(received, { kind: 'received', response }, step) })
    }
  }
  if (session.applying !== undefined) events.push(...resultsOf(state, session.applying, step))
  return events
}

/** A good response is applied, or fails for another reason. */
function resultsOf(state: XdsState, { order, version, isGood }: ModelResponse, step: Step) {
  const tried = { ...state, lastApplied: order }
  const applied = isGood ? { ...tried, active: version } : tried
  const bad = { message: 'bad', isRetryable: false }
  const event = { kind: 'applied', error: isGood ? undefined : bad } as const
  const result = { label: `applied ${version}`, state: dispatch(applied, event, step) }
  if (!isGood) return [result]
  const failed = { kind: 'applied', error: { message: 'failed', isRetryable: true } } as const
  return [result, { label: `failed ${version}`, state: dispatch(tried, failed, step) }]
}

function dispatch(state: XdsState, event: SessionEvent<ModelResponse>, step: Step): XdsState {
  const { session, actions } = step(state.session, event)
  const isBusy = event.kind !== 'applied' && state.session.applying !== undefined
  let next: XdsState = { ...state, session }
  for (const action of actions) next = perform(next, action, isBusy)
  return next
}

function perform(state: XdsState, action: SessionAction<ModelResponse>, isBusy: boolean): XdsState {
  const problems = new Set(state.problems)
  if (action.kind === 'apply') {
    if (isBusy) problems.add(broken.concurrent)
    const { order, version } = action.response
    const isRetry = order === state.lastApplied && version !== state.active
    if (order <= state.lastApplied && !isRetry) problems.add(broken.wrongOrder)
    return { ...state, problems: [...problems].sort() }
  }
  return send(state, action, problems)
}

function send(
  state: XdsState,
  action: Extract<SessionAction<ModelResponse>, { readonly kind: 'send' }>,
  problems: Set<string>,
): XdsState {
  const { isFirst, stream, nonce, version } = action
  const isOwn = state.sent.some((each) => each.nonce === nonce && each.stream === state.streams)
  const isOpen = state.isOpen && stream === state.streams
  if (!isOpen || (!isFirst && !isOwn)) problems.add(broken.foreignNonce)
  if (version !== (isFirst ? '' : state.active)) problems.add(broken.wrongVersion)
  const result = isFirst ? '' : `${nonce} ${action.error ?? ''}`
  if (result !== '' && result === state.result) problems.add(broken.repeated)
  const acknowledged = isFirst ? '' : nonce
  return { ...state, acknowledged, result, problems: [...problems].sort() }
}

/** The newest response of the open stream must be acknowledged, the newest of all applied. */
function unacknowledgedIn(state: XdsState) {
  const { session, isOpen, streams, sent, active, acknowledged, lastApplied } = state
  const newest = sent.at(-1)
  if (newest === undefined || session.applying !== undefined) return []
  const isOwn = isOpen && newest.stream === streams
  return [
    ...(isOwn && acknowledged !== newest.nonce ? [broken.unacknowledged] : []),
    ...(isOwn && newest.isGood && active !== newest.version ? [broken.notRetried] : []),
    ...(lastApplied !== newest.order ? [broken.notApplied] : []),
  ]
}
