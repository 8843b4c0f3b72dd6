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

/** Which requests to send, where, and which response is expected. */
export interface LoadOptions {
  /** Where the next connection goes. */
  readonly port: () => number
  readonly ask: () => RawRequest
  readonly isGood: (answer: RawResponse) => boolean
  /** @default 6 */
  readonly clients?: number
}

/** The result of a load. */
export interface LoadResult {
  readonly asked: number
  readonly failed: readonly string[]
  /** How many more failed while the whole machine stalled, which no server can prevent. */
  readonly excused: number
  /** Longest response time, and the 99th percentile, in ms. */
  readonly msMax: number
  readonly msP99: number
}

/** A running load. */
export interface Load {
  /** Responses so far. */
  answered(): number
  /** Waits for this many more responses. */
  more(answers: number): Promise<void>
  /** Stops it. */
  stop(): Promise<LoadResult>
}

const CLIENTS = 6
/** Between two requests of a client: the machine is to be busy, not drowned. */
const PAUSE_MS = 10
const MORE_MS_MAX = 60_000
/** What clients have under way while the machine stands still three times; more have failed. */
const EXCUSED_MAX = 3 * CLIENTS

/** Runs `work` under the load, and stops the load in any case. */
export async function underLoad<T>(load: Load, work: () => Promise<T>): Promise<[LoadResult, T]> {
  try {
    const result = await work()
    return [await load.stop(), result]
  } finally {
    await load.stop()
  }
}

/** Starts it. */
export function startLoad(options: LoadOptions): Load {
  const times: number[] = []
  const failed: string[] = []
  const pauses = watchPauses()
  let excused = 0
  let isOver = false
  const fail = (why: string, startedMs: number) => {
    if (excused < EXCUSED_MAX && pauses.wasStalledAfter(startedMs)) excused++
    else failed.push(why)
  }
  const exchange = async (connection: RawConnection) => {
    const startedMs = performance.now()
    const answer = await connection.exchange(options.ask())
    times.push(performance.now() - startedMs)
    if (!options.isGood(answer)) fail(describeResponse(answer), startedMs)
    return headerOf(answer, 'Connection') !== 'close'
  }
  const work = async () => {
    let connection: RawConnection | undefined
    while (!isOver) {
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
  const working = Array.from({ length: options.clients ?? CLIENTS }, work)
  return {
    answered: () => times.length,
    async more(answers) {
      const enough = times.length + answers
      await waitFor(`${String(answers)} answers`, () => times.length >= enough, MORE_MS_MAX)
    },
    async stop() {
      isOver = true
      await Promise.all(working)
      pauses.stop()
      const sorted = [...times].sort((a, b) => a - b)
      const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0)
      const msMax = Math.round(sorted.at(-1) ?? 0)
      return { asked: times.length, failed, excused, msP99: at(0.99), msMax }
    },
  }
}
