// Runs the real code of one process over chosen results of its stores, and returns its next calls.
// Its local state is the history of results, so each history is run once and cached.
import { StoreError } from '../../src/resilience/store-error.ts'

/** Arguments and results of store calls, in a comparable form. */
export type Json = string | number | boolean | null | readonly Json[]

/** One operation on the model: its name and arguments. */
export type Op = readonly [name: string, ...args: Json[]]

/**
 * `write` and `read` are store calls and may time out; a write that timed out may be applied at any
 * later time, or never. `local` reports an event of the process to the model. `now` does too, and
 * is atomic with the preceding step.
 */
type Kind = 'write' | 'read' | 'local' | 'now'

/** Performs an operation on the model; rejects with StoreError if the call times out. */
export type Perform = (kind: Kind, op: Op) => Promise<Json>

/** A process: real code that is deterministic given the results of `perform`. */
export interface Process {
  readonly name: string
  readonly run: (perform: Perform) => Promise<Json>
}

/** A call without a result yet; `index` counts the process's calls. */
export interface PendingCall {
  readonly index: number
  readonly kind: Kind
  readonly op: Op
}

/** The result of a call that timed out. */
export const UNKNOWN = Symbol('unknown')

/** The result of a call. */
export type Result = Json | typeof UNKNOWN

/** A process after one history: its pending calls, or its outcome. */
export interface Point {
  readonly id: number
  readonly process: Process
  readonly history: readonly (readonly [index: number, result: Result])[]
  readonly pending: readonly PendingCall[]
  readonly outcome: Json | undefined
  readonly next: Map<string, Point>
}

/** Caches every point that a run has reached. */
export interface Replayer {
  start(process: Process): Promise<Point>
  /** The point after the pending call `index` returns `result`; a promise only for a new point. */
  step(from: Point, index: number, result: Result): Point | Promise<Point>
  /** Runs of real code so far. */
  readonly executions: () => number
}

/** Creates a replayer without cached points. */
export function createReplayer(): Replayer {
  let points = 0
  const reach = async (process: Process, history: Point['history']): Promise<Point> => {
    const { pending, outcome } = await replay(process, history)
    return { id: points++, process, history, pending, outcome, next: new Map() }
  }
  return {
    start: (process) => reach(process, []),
    step(from, index, result) {
      const key =
        result === UNKNOWN ? `${String(index)}?` : `${String(index)}${JSON.stringify(result)}`
      const cached = from.next.get(key)
      if (cached !== undefined) return cached
      return reach(from.process, [...from.history, [index, result]]).then((point) => {
        from.next.set(key, point)
        return point
      })
    },
    executions: () => points,
  }
}

/** Resolves when the process waits for the result of a call. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function replay(
  process: Process,
  history: Point['history'],
): Promise<Pick<Point, 'pending' | 'outcome'>> {
  const calls: {
    call: PendingCall
    resolve: (result: Json) => void
    reject: (e: Error) => void
  }[] = []
  const perform: Perform = (kind, op) =>
    new Promise((resolve, reject) => {
      calls.push({ call: { index: calls.length, kind, op }, resolve, reject })
    })
  let outcome: Json | undefined
  process.run(perform).then(
    (returned) => (outcome = returned),
    (error: unknown) => (outcome = ['threw', String(error)]),
  )
  await settled()
  const completed = new Set<number>()
  for (const [index, result] of history) {
    const pendingCall = calls[index]
    if (pendingCall === undefined) throw new Error(`${process.name} is not deterministic`)
    completed.add(index)
    if (result === UNKNOWN) pendingCall.reject(new StoreError('timed out', { outcome: 'unknown' }))
    else pendingCall.resolve(result)
    await settled()
  }
  const pending = calls.map(({ call }) => call).filter(({ index }) => !completed.has(index))
  return { pending, outcome }
}
