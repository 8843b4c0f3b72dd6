// The load generator for the limiter: a fixed number of gRPC calls in flight (a closed loop) over a
// few connections, for a given time. It connects to loopback only; any error aborts the run.
import { type LoadFigures, watchSilence } from './drive.ts'
import {
  type Call,
  callOf,
  type GrpcConnection,
  openGrpcConnection,
  type OverallCode,
} from './grpc-connection.ts'
import { quantilesOf } from './report.ts'

/** The calls, and when to stop. */
export interface CallLoad {
  readonly port: number
  readonly connections: number
  readonly inFlight: number
  /** Serialised requests, sent in turn. */
  readonly requests: readonly Buffer[]
  readonly msMax: number
}

/** The figures of a load of calls. */
export interface CallFigures extends Omit<LoadFigures, 'statuses'> {
  readonly codes: Readonly<Record<OverallCode, number>>
}

const CALLS_MAX = 4_000_000

/** Opens the connections; `run` resolves after the last response, and rejects on an error. */
export async function prepareCalls(load: CallLoad): Promise<{ run(): Promise<CallFigures> }> {
  const calls = load.requests.map(callOf)
  const [firstRequest] = load.requests
  if (firstRequest === undefined)
    throw new Error('Cannot prepare the load: it needs at least one request')
  const codes = { ok: 0, over: 0, failed: 0 }
  const latenciesMs = new Float64Array(CALLS_MAX)
  const callStartMs = new Float64Array(load.inFlight)
  let sent = 0
  let completed = 0
  let endMs = Infinity
  const finished = Promise.withResolvers<undefined>()
  finished.promise.catch(() => undefined) // `run` reports an earlier error

  const connections: GrpcConnection[] = []
  const next = (slot: number, nowMs: number) => {
    callStartMs[slot] = nowMs
    const call: Call | undefined = calls[sent++ % calls.length]
    if (call !== undefined) connections[slot % connections.length]?.add(slot, call)
  }
  const onResponse = (slot: number, code: OverallCode) => {
    const nowMs = performance.now()
    latenciesMs[completed++] = nowMs - (callStartMs[slot] ?? 0)
    codes[code]++
    if (code === 'failed') finished.reject(new Error('a call failed'))
    if (nowMs < endMs && sent < CALLS_MAX) next(slot, nowMs)
    else if (completed === sent) finished.resolve(undefined)
  }
  const open = () =>
    openGrpcConnection({ port: load.port, firstRequest, onResponse, onFault: finished.reject })
  const count = Math.min(load.connections, load.inFlight)
  connections.push(...(await Promise.all(Array.from({ length: count }, open))))

  return {
    async run() {
      const startMs = performance.now()
      endMs = startMs + load.msMax
      const silence = watchSilence(() => completed, finished.reject)
      try {
        for (let slot = 0; slot < load.inFlight; slot++) next(slot, startMs)
        for (const connection of connections) connection.flush()
        await finished.promise
      } finally {
        clearInterval(silence)
        for (const connection of connections) connection.close()
      }
      const elapsedMs = performance.now() - startMs
      const quantile = quantilesOf(latenciesMs, completed)
      return { responses: completed, codes, elapsedMs, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
    },
  }
}
