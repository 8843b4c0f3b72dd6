// The load generator of the limiter: a fixed number of gRPC calls under way (a closed loop) over a
// few connections, until a time is reached. Only to this machine; any fault ends the run.
import { type Driven, watchSilence } from './drive.ts'
import {
  type Call,
  callOf,
  type GrpcConnection,
  openGrpcConnection,
  type OverallCode,
} from './grpc-connection.ts'
import { quantilesOf } from './report.ts'

/** What to ask, and when to stop. */
export interface CallLoad {
  readonly port: number
  readonly connections: number
  readonly inFlight: number
  /** Requests, serialised; asked in turn. */
  readonly requests: readonly Buffer[]
  readonly msMax: number
}

/** What came of it. */
export interface DrivenCalls extends Omit<Driven, 'statuses'> {
  readonly codes: Readonly<Record<OverallCode, number>>
}

const CALLS_MAX = 4_000_000

/** Opens the connections, runs the load, waits for every answer. Throws what went wrong. */
export async function prepareCalls(load: CallLoad): Promise<{ run(): Promise<DrivenCalls> }> {
  const calls = load.requests.map(callOf)
  const [firstRequest] = load.requests
  if (firstRequest === undefined) throw new Error('a load needs at least one request')
  const codes = { ok: 0, over: 0, failed: 0 }
  const latenciesMs = new Float64Array(CALLS_MAX)
  const begunMs = new Float64Array(load.inFlight)
  let asked = 0
  let answered = 0
  let endMs = Infinity
  const ending = Promise.withResolvers<undefined>()
  ending.promise.catch(() => undefined) // a fault before `run` is told by `run`

  const connections: GrpcConnection[] = []
  const next = (slot: number, nowMs: number) => {
    begunMs[slot] = nowMs
    const call: Call | undefined = calls[asked++ % calls.length]
    if (call !== undefined) connections[slot % connections.length]?.add(slot, call)
  }
  const onAnswer = (slot: number, code: OverallCode) => {
    const nowMs = performance.now()
    latenciesMs[answered++] = nowMs - (begunMs[slot] ?? 0)
    codes[code]++
    if (code === 'failed') ending.reject(new Error('a call got no answer'))
    if (nowMs < endMs && asked < CALLS_MAX) next(slot, nowMs)
    else if (answered === asked) ending.resolve(undefined)
  }
  const open = () =>
    openGrpcConnection({ port: load.port, firstRequest, onAnswer, onFault: ending.reject })
  const count = Math.min(load.connections, load.inFlight)
  connections.push(...(await Promise.all(Array.from({ length: count }, open))))

  return {
    async run() {
      const startMs = performance.now()
      endMs = startMs + load.msMax
      const silence = watchSilence(() => answered, ending.reject)
      try {
        for (let slot = 0; slot < load.inFlight; slot++) next(slot, startMs)
        for (const connection of connections) connection.flush()
        await ending.promise
      } finally {
        clearInterval(silence)
        for (const connection of connections) connection.close()
      }
      const wallMs = performance.now() - startMs
      const quantile = quantilesOf(latenciesMs, answered)
      return { answers: answered, codes, wallMs, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
    },
  }
}
