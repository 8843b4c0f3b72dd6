// The load generator: a fixed number of connections, each with one request in flight (a closed
// loop), up to a count or a time. It connects to loopback only; any error aborts the run.
import { type RawResponse, type Connection, openConnection } from './connection.ts'
import { quantilesOf } from './report.ts'

/** The requests, and when to stop. */
export interface Load {
  readonly port: number
  readonly connections: number
  /** The number of local addresses, used in turn. @default 1 */
  readonly clients?: number
  /** The next request, serialised. */
  readonly request: () => Buffer
  readonly expectedStatuses: readonly number[]
  readonly requestsMax: number
  readonly msMax: number
  readonly onResponse?: (response: RawResponse) => void
}

/** The figures of a load. */
export interface LoadFigures {
  readonly responses: number
  readonly statuses: Readonly<Record<number, number>>
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** The run fails after this time without a response. */
const SILENCE_MS_MAX = 10_000

/** A prepared load: its connections are open and idle. */
export interface Driver {
  /** Sends the load and resolves after the last response. Rejects on an error. */
  run(): Promise<LoadFigures>
}

/** Opens the connections of a load. */
export async function prepareLoad(load: Load): Promise<Driver> {
  const statuses: Record<number, number> = {}
  const latenciesMs = new Float64Array(load.requestsMax)
  let sent = 0
  let completed = 0
  let endMs = Infinity
  let finish: () => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const finished = new Promise<void>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  finished.catch(() => undefined) // `run` reports an earlier error

  const openWorker = async (_: unknown, at: number): Promise<Worker> => {
    let startMs = 0
    const connection = await openConnection({
      port: load.port,
      from: clientAddress(at % (load.clients ?? 1)),
      onFault: fail,
      onResponse(response) {
        const nowMs = performance.now()
        latenciesMs[completed++] = nowMs - startMs
        statuses[response.status] = (statuses[response.status] ?? 0) + 1
        if (!load.expectedStatuses.includes(response.status)) {
          fail(new Error(`unexpected response: ${response.text.slice(0, 500)}`))
          return
        }
        load.onResponse?.(response)
        if (nowMs < endMs && sent < load.requestsMax) next()
        else if (completed === sent) finish()
      },
    })
    const next = () => {
      sent++
      startMs = performance.now()
      connection.send(load.request())
    }
    return { connection, next }
  }
  const workers = await Promise.all(Array.from({ length: load.connections }, openWorker))

  return {
    async run() {
      const startMs = performance.now()
      endMs = startMs + load.msMax
      const watch = watchSilence(() => completed, fail)
      try {
        for (const { next } of workers) if (sent < load.requestsMax) next()
        await finished
      } finally {
        clearInterval(watch)
        for (const { connection } of workers) connection.close()
      }
      const elapsedMs = performance.now() - startMs
      const quantile = quantilesOf(latenciesMs, completed)
      return {
        responses: completed,
        statuses,
        elapsedMs,
        p50Ms: quantile(0.5),
        p99Ms: quantile(0.99),
      }
    },
  }
}

/** The loopback address of a client. */
function clientAddress(client: number): string {
  return `127.0.${String(1 + (client >> 8))}.${String(client & 255)}`
}

interface Worker {
  readonly connection: Connection
  readonly next: () => void
}

/** Fails if no response arrives for too long. The caller clears the timer. */
export function watchSilence(
  completed: () => number,
  fail: (error: Error) => void,
): NodeJS.Timeout {
  let before = -1
  return setInterval(() => {
    if (completed() === before) fail(new Error(`no response for ${SILENCE_MS_MAX} ms`))
    before = completed()
  }, SILENCE_MS_MAX)
}
