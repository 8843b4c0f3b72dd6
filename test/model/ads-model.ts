// A model of versions on their way from the controller to one limiter: the real state machines of
// the server's streams and of the limiter's subscription, connections that break at any time and
// are seen to be broken later by either side, and a restart of the server.
import {
  newSession,
  type Received,
  type Session,
  type SessionEvent,
  stepSession,
} from '../../src/clients/xds/session.ts'
import {
  newStreamState,
  type SendableVersion,
  type StreamEvent,
  type StreamState,
  type StreamStep,
  stepStream,
} from '../../src/grpc/ads/stream-state.ts'
import type { Model } from './explore.ts'

/** A published version; the limiter rejects a bad one, and may fail once to apply a good one. */
interface ModelVersion extends SendableVersion {
  readonly isGood: boolean
}

/** A version that arrives at the limiter. */
type ModelResponse = ModelVersion & Received

interface Request {
  readonly version: string
  readonly nonce: string
  readonly error: string | undefined
}

/** A stream as the server sees it, with what has happened on it. */
interface ServerStream {
  readonly id: number
  readonly state: StreamState<ModelVersion>
  /** The version sent last, until it is written and settled. */
  readonly outstanding: { readonly isWritten: boolean; readonly isSettled: boolean } | undefined
  readonly nonce: string
  /** The last rejected version, and the nonce that was the newest then. */
  readonly rejection: { readonly version: string; readonly newest: string } | undefined
}

/** The controller, the limiter, what is on the way, and the violations so far. */
export interface AdsState {
  readonly newest: ModelVersion | undefined
  readonly isFirstGood: boolean
  /** The number of nonces so far. */
  readonly nonces: number
  readonly hasRestarted: boolean
  readonly hasFailed: boolean
  readonly servers: readonly ServerStream[]
  readonly session: Session<ModelResponse>
  readonly streams: number
  readonly isOpen: boolean
  readonly toServer: readonly Request[]
  readonly toClient: readonly ModelVersion[]
  /** The version that is active in the limiter. */
  readonly active: string
  /** The streams on which the limiter has accepted a version, with the version. */
  readonly accepted: readonly string[]
  readonly problems: readonly string[]
}

/** The function under test, or a mutant. */
export type Step = (
  state: StreamState<ModelVersion>,
  event: StreamEvent<ModelVersion>,
) => StreamStep<ModelVersion>

/** The invariants, by the message that reports a violation. */
export const broken = {
  concurrent: 'a version is sent before the one in flight is written and settled',
  resent: 'a rejected version is sent although no other was published since',
  notAccepted: 'a version counts as active on a stream on which the limiter has not accepted it',
  unsettled: 'all is delivered, but the newest version is neither accepted nor rejected',
  wrongResult: 'all is delivered, but the limiter has another version than the server lists',
} as const

const STREAM_COUNT_MAX = 2
const NONCES_MAX = 3

/** The model; `step` is the server's. */
export function adsModel(step: Step = stepStream): Model<AdsState> {
  return {
    initial: {
      newest: undefined,
      isFirstGood: false,
      nonces: 0,
      hasRestarted: false,
      hasFailed: false,
      servers: [],
      session: newSession,
      streams: 0,
      isOpen: false,
      toServer: [],
      toClient: [],
      active: '',
      accepted: [],
      problems: [],
    },
    apply: () => {
      throw new Error('the model has no processes')
    },
    finish: (state) => state,
    events: (state) => [
      ...publications(state, step),
      ...connections(state),
      ...deliveries(state, step),
    ],
    broken: (state) => [...state.problems, ...unsettledIn(state)],
  }
}

interface Event {
  readonly label: string
  readonly state: AdsState
}

/** New versions, a rollback to the first one, and a restart of the server. */
function publications(state: AdsState, step: Step): Event[] {
  const { newest, nonces, hasRestarted } = state
  if (nonces === NONCES_MAX) return []
  const nonce = `n${nonces + 1}`
  const publish = (version: string, isGood: boolean): Event => {
    const published = { version, nonce, isGood }
    const isFirstGood = nonces === 0 ? isGood : state.isFirstGood
    let next: AdsState = { ...state, newest: published, nonces: nonces + 1, isFirstGood }
    for (const { id } of state.servers) {
      next = stepServer(next, { id, event: { kind: 'published', version: published } }, step)
    }
    return { label: `publish ${isGood ? 'good' : 'bad'} ${version}`, state: next }
  }
  const events = [publish(`v${nonces + 1}`, true), publish(`v${nonces + 1}`, false)]
  if (newest !== undefined && newest.version !== 'v1') {
    events.push(publish('v1', state.isFirstGood))
  }
  if (newest !== undefined && !hasRestarted) {
    const restarted = { ...state, hasRestarted: true, servers: [], toServer: [] }
    const renewed = { newest: { ...newest, nonce }, nonces: nonces + 1 }
    events.push({ label: 'restart the server', state: { ...restarted, ...renewed } })
  }
  return events
}

/** Streams that open and close; the server may see a close earlier or later than the limiter. */
function connections(state: AdsState): Event[] {
  const { servers, streams, isOpen, newest } = state
  const events: Event[] = servers.map(({ id }) => ({
    label: `the server closes stream ${id}`,
    state: {
      ...state,
      servers: servers.filter((each) => each.id !== id),
      toServer: id === streams ? [] : state.toServer,
    },
  }))
  if (isOpen) {
    const closed = { ...state, isOpen: false, toServer: [], toClient: [] }
    const event = { kind: 'closed', stream: streams } as const
    events.push({ label: 'the limiter closes the stream', state: stepClient(closed, event) })
  } else if (streams < STREAM_COUNT_MAX) {
    const id = streams + 1
    const opened = newStreamState<ModelVersion>(newest)
    const server = { id, state: opened, outstanding: undefined, nonce: '', rejection: undefined }
    const next = { ...state, isOpen: true, streams: id, servers: [...servers, server] }
    events.push({ label: `open ${id}`, state: stepClient(next, { kind: 'opened', stream: id }) })
  }
  return events
}

/** Messages that arrive, bytes that are written, and versions that are applied. */
function deliveries(state: AdsState, step: Step): Event[] {
  const { servers, session, streams } = state
  const [request, ...laterRequests] = state.toServer
  const [version, ...laterVersions] = state.toClient
  const events: Event[] = servers
    .filter(({ outstanding }) => outstanding?.isWritten === false)
    .map(({ id }) => {
      const event = { kind: 'written' } as const
      return {
        label: `written on ${id}`,
        state: stepServer(written(state, id), { id, event }, step),
      }
    })
  if (request !== undefined) {
    const next = settled({ ...state, toServer: laterRequests }, request)
    const event = { kind: 'request', ...request } as const
    const stepped = stepServer(next, { id: streams, event }, step)
    events.push({ label: `request ${JSON.stringify(request)}`, state: stepped })
  }
  if (version !== undefined) {
    const response = { ...version, stream: streams }
    const next = stepClient({ ...state, toClient: laterVersions }, { kind: 'received', response })
    events.push({ label: `response ${version.nonce}`, state: next })
  }
  if (session.applying !== undefined) events.push(...resultsOf(state, session.applying))
  return events
}

function resultsOf(state: AdsState, applied: ModelResponse): Event[] {
  const { version, isGood, stream } = applied
  const accepted = isGood
    ? [...new Set([...state.accepted, `${stream} ${version}`])].sort()
    : state.accepted
  const next = { ...state, active: isGood ? version : state.active, accepted }
  const bad = { message: 'bad', isRetryable: false }
  const event = { kind: 'applied', error: isGood ? undefined : bad } as const
  const result = { label: `applied ${version}`, state: stepClient(next, event) }
  if (!isGood || state.hasFailed) return [result]
  const failure = { kind: 'applied', error: { message: 'failed', isRetryable: true } } as const
  const failed = stepClient({ ...state, hasFailed: true }, failure)
  return [result, { label: `failed ${version}`, state: failed }]
}

function update(
  state: AdsState,
  id: number,
  changeOf: (stream: ServerStream) => Partial<ServerStream>,
): AdsState {
  const servers = state.servers.map((each) =>
    each.id === id ? { ...each, ...changeOf(each) } : each,
  )
  return { ...state, servers }
}

/** Records that the bytes of the version in flight are written. */
function written(state: AdsState, id: number): AdsState {
  return update(state, id, ({ outstanding }) => ({
    outstanding: outstanding && { ...outstanding, isWritten: true },
  }))
}

/** Records that a request settles the version in flight, if it has its nonce. */
function settled(state: AdsState, { nonce, error }: Request): AdsState {
  const newest = state.newest?.nonce ?? ''
  return update(state, state.streams, (stream) => {
    const { outstanding } = stream
    if (outstanding === undefined || stream.nonce !== nonce) return {}
    const version = stream.state.inFlight?.version.version ?? ''
    const rejection = error === undefined ? undefined : { version, newest }
    return { outstanding: { ...outstanding, isSettled: true }, rejection }
  })
}

function stepServer(
  state: AdsState,
  { id, event }: { readonly id: number; readonly event: StreamEvent<ModelVersion> },
  step: Step,
): AdsState {
  const server = state.servers.find((each) => each.id === id)
  if (server === undefined) return state
  const { state: next, send } = step(server.state, event)
  const problems = new Set(state.problems)
  const { outstanding, rejection } = server
  if (send !== undefined) {
    const isFree = outstanding === undefined || (outstanding.isWritten && outstanding.isSettled)
    if (!isFree) problems.add(broken.concurrent)
    const isResent = rejection?.version === send.version && rejection.newest === send.nonce
    if (isResent) problems.add(broken.resent)
  }
  if (next.active !== '' && !state.accepted.includes(`${id} ${next.active}`)) {
    problems.add(broken.notAccepted)
  }
  const sent = send && { outstanding: { isWritten: false, isSettled: false }, nonce: send.nonce }
  const isLive = state.isOpen && id === state.streams
  const toClient = send && isLive ? [...state.toClient, send] : state.toClient
  const changed = { ...state, toClient, problems: [...problems].sort() }
  return update(changed, id, () => ({ state: next, ...sent }))
}

function stepClient(state: AdsState, event: SessionEvent<ModelResponse>): AdsState {
  const { session, actions } = stepSession(state.session, event)
  let { toServer } = state
  const isLive = state.isOpen && state.servers.some(({ id }) => id === state.streams)
  for (const action of actions) {
    if (action.kind !== 'send' || !isLive) continue
    const { version, nonce, error } = action
    toServer = [...toServer, { version, nonce, error }]
  }
  return { ...state, session, toServer }
}

/** With nothing on the way, the open stream must have settled the newest version. */
function unsettledIn(state: AdsState): string[] {
  const { newest, session, toServer, toClient, isOpen, streams, active } = state
  const server = state.servers.find(({ id }) => id === streams)
  if (newest === undefined || server === undefined || !isOpen) return []
  if (toServer.length + toClient.length > 0 || session.applying !== undefined) return []
  if (server.outstanding?.isWritten === false) return []
  const { rejected, active: listed } = server.state
  if (newest.isGood ? listed !== newest.version : rejected?.version !== newest.version) {
    return [broken.unsettled]
  }
  const isListed = newest.isGood
    ? active === listed && rejected === undefined
    : active !== newest.version
  return isListed ? [] : [broken.wrongResult]
}
