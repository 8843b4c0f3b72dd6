// A load on the edge during a fault: clients that keep their connections, reconnect when the server
// closes one, and record every response that is not the expected one.
import { setTimeout as sleep } from 'node:timers/promises'
import { describeResponse } from '../kit/http/machine-clients.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  openConnection,
  type RawConnection,
} from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import { watchPauses } from '../kit/watch-pauses.ts'

/** The requests to send, where to send them, and the expected response. */
export interface LoadOptions {
  /** The port of the next connection. */
  readonly port: () => number
  readonly nextRequest: () => RawRequest
  readonly isExpected: (response: RawResponse) => boolean
  /** @default 6 */
  readonly clients?: number
}

/** The result of a load. */
export interface LoadResult {
  readonly requests: number
  readonly failed: readonly string[]
  /** Other requests, which failed while the whole machine stalled; no server can prevent that. */
  readonly failedWhileStalled: number
  /** Longest response time, and the 99th percentile, in ms. */
  readonly msMax: number
  readonly msP99: number
}

/** A running load. */
export interface Load {
  /** Waits for this many further responses. */
  waitForResponses(count: number): Promise<void>
  /** Stops it; a second call returns the same result. */
  stop(): Promise<LoadResult>
}

const CLIENTS = 6
/** Between two requests of a client: the machine shall be busy, not overloaded. */
const PAUSE_MS = 10
const RESPONSES_MS_MAX = 60_000
/** Requests in flight while the machine stalls three times; any more count as failed. */
const STALLED_MAX = 3 * CLIENTS

/** Runs `work` under the load, and stops the load even if `work` throws. */
export async function underLoad<T>(load: Load, work: () => Promise<T>): Promise<[LoadResult, T]> {
  try {
    const result = await work()
    return [await load.stop(), result]
  } finally {
    await load.stop()
  }
}

/** Starts a load. */
export function startLoad(options: LoadOptions): Load {
  const times: number[] = []
  const failed: string[] = []
  const pauses = watchPauses()
  let failedWhileStalled = 0
  let isStopping = false
  const fail = (reason: string, startedMs: number) => {
    if (failedWhileStalled < STALLED_MAX && pauses.wasStalledAfter(startedMs)) failedWhileStalled++
    else failed.push(reason)
  }
  const exchange = async (connection: RawConnection) => {
    const startedMs = performance.now()
    const response = await connection.exchange(options.nextRequest())
    times.push(performance.now() - startedMs)
    if (!options.isExpected(response)) fail(describeResponse(response), startedMs)
    return headerOf(response, 'Connection') !== 'close'
  }
  const work = async () => {
    let connection: RawConnection | undefined
    while (!isStopping) {
      const startedMs = performance.now()
      try {
        connection ??= await openConnection(options.port())
        if (!(await exchange(connection))) {
          connection.close()
          connection = undefined
        }
      } catch (error) {
        fail(String(error), startedMs)
        connection?.close()
        connection = undefined
      }
      await sleep(PAUSE_MS)
    }
    connection?.close()
  }
  const workers = Array.from({ length: options.clients ?? CLIENTS }, work)
  return {
    async waitForResponses(count) {
      const total = times.length + count
      await waitFor(`${String(count)} responses`, () => times.length >= total, RESPONSES_MS_MAX)
    },
    async stop() {
      isStopping = true
      await Promise.all(workers)
      pauses.stop()
      const sorted = [...times].sort((a, b) => a - b)
      const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0)
      const msMax = Math.round(sorted.at(-1) ?? 0)
      return { requests: times.length, failed, failedWhileStalled, msP99: at(0.99), msMax }
    },
  }
}
