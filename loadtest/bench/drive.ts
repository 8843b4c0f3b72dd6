// The load generator: a fixed number of connections, each with one request under way (a closed
// loop), until a count or a time is reached. Only to this machine; any fault ends the run.
import { type RawResponse, type Connection, openConnection } from './connection.ts'
import { quantilesOf } from './report.ts'

/** What to send, and when to stop. */
export interface Load {
  readonly port: number
  readonly connections: number
  /** Addresses that they come from, in turn. @default 1 */
  readonly clients?: number
  /** The next request, serialised. */
  readonly request: () => Buffer
  readonly expectedStatuses: readonly number[]
  readonly requestsMax: number
  readonly msMax: number
  readonly onResponse?: (response: RawResponse) => void
}

/** What came of it. */
export interface Driven {
  readonly responses: number
  readonly statuses: Readonly<Record<number, number>>
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** An answer must come this soon, or the run has failed. */
const SILENCE_MS_MAX = 10_000

/** A load under way: its connections are open, none has sent yet. */
export interface Driver {
  /** Sends until the end and waits for every answer. Throws what went wrong. */
  run(): Promise<Driven>
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
  finished.catch(() => undefined) // a fault before `run` is told by `run`

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
          fail(new Error(`an answer was not expected: ${response.text.slice(0, 500)}`))
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
      return { responses: completed, statuses, elapsedMs, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
    },
  }
}

/** An address of this machine for each client. */
function clientAddress(client: number): string {
  return `127.0.${String(1 + (client >> 8))}.${String(client & 255)}`
}

interface Worker {
  readonly connection: Connection
  readonly next: () => void
}

/** Fails where nothing was answered for too long; to be cleared at the end. */
export function watchSilence(completed: () => number, fail: (error: Error) => void): NodeJS.Timeout {
  let before = -1
  return setInterval(() => {
    if (completed() === before) fail(new Error('no answer for too long'))
    before = completed()
  }, SILENCE_MS_MAX)
}
