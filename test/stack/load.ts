// A load on the edge while something fails: clients that keep their connections, open another where
// they are told to close, and note every answer that is not the one they want.
import { setTimeout as sleep } from 'node:timers/promises'
import { renderAnswer } from '../component/machine-clients.ts'
import {
  type Answer,
  type Ask,
  headerOf,
  openConnection,
  type RawConnection,
} from '../component/raw-http.ts'
import { waitFor } from '../component/wait-for.ts'
import { watchPauses } from '../component/watch-pauses.ts'

/** What to ask, where, and what is a good answer. */
export interface LoadOptions {
  /** Where the next connection goes. */
  readonly port: () => number
  readonly ask: () => Ask
  readonly isGood: (answer: Answer) => boolean
  /** @default 6 */
  readonly clients?: number
}

/** What a load saw. */
export interface LoadSeen {
  readonly asked: number
  readonly failed: readonly string[]
  /** How many failed besides, as the whole machine stood still: no server can help that. */
  readonly excused: number
  /** Longest answer, and the one that 99 of 100 were faster than, in ms. */
  readonly msMax: number
  readonly msP99: number
}

/** A load that goes on. */
export interface Load {
  /** Answers so far. */
  answered(): number
  /** Waits for so many answers more. */
  more(answers: number): Promise<void>
  /** Ends it. */
  stop(): Promise<LoadSeen>
}

const CLIENTS = 6
/** Between two requests of a client: the machine is to be busy, not drowned. */
const PAUSE_MS = 10
const MORE_MS_MAX = 60_000
/** What clients have under way while the machine stands still three times; more have failed. */
const EXCUSED_MAX = 3 * CLIENTS

/** Does `work` under the load, and ends the load whatever comes of it. */
export async function underLoad<T>(load: Load, work: () => Promise<T>): Promise<[LoadSeen, T]> {
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
  const fail = (why: string, begunMs: number) => {
    if (excused < EXCUSED_MAX && pauses.stoodStillAfter(begunMs)) excused++
    else failed.push(why)
  }
  const exchange = async (connection: RawConnection) => {
    const begunMs = performance.now()
    const answer = await connection.exchange(options.ask())
    times.push(performance.now() - begunMs)
    if (!options.isGood(answer)) fail(renderAnswer(answer), begunMs)
    return headerOf(answer, 'Connection') !== 'close'
  }
  const work = async () => {
    let connection: RawConnection | undefined
    while (!isOver) {
      const begunMs = performance.now()
      try {
        connection ??= await openConnection(options.port())
        if (!(await exchange(connection))) {
          connection.close()
          connection = undefined
        }
      } catch (error) {
        fail(String(error), begunMs)
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
