// Runs the real code of one process over chosen results of its stores, and returns its next calls.
// Its local state is the history of results, so each history is run once and cached.
import { StoreError } from '../../src/resilience/store-error.ts'

/** Arguments and results of stores, in a comparable form. */
export type Json = string | number | boolean | null | readonly Json[]

/** One call of a store: its name and arguments. */
export type Op = readonly [name: string, ...args: Json[]]

/**
 * `write` and `read` may fail; a failed write may still land, at any time or never. `local` is no
 * call of a store at all, but a moment that the model must know of, and `now` one of which it is
 * told at once: nothing else happens between what went before and it.
 */
type Kind = 'write' | 'read' | 'local' | 'now'

/** How a process asks; rejects with StoreError where the answer was lost. */
export type Ask = (kind: Kind, op: Op) => Promise<Json>

/** A process: real code that is deterministic but for what `ask` answers it. */
export interface Process {
  readonly name: string
  readonly run: (ask: Ask) => Promise<Json>
}

/** A call without an answer yet; `index` counts the process's calls. */
export interface PendingCall {
  readonly index: number
  readonly kind: Kind
  readonly op: Op
}

/** A result that was lost. */
export const UNKNOWN = Symbol('unknown')

/** The result of a call. */
export type Answer = Json | typeof UNKNOWN

/** A process after one history: what it waits for, or its outcome. */
export interface Point {
  readonly id: number
  readonly process: Process
  readonly history: readonly (readonly [index: number, answer: Answer])[]
  readonly pending: readonly PendingCall[]
  readonly outcome: Json | undefined
  readonly next: Map<string, Point>
}

/** Caches every point that any run has reached. */
export interface Replayer {
  begin(process: Process): Promise<Point>
  /** The point after `answer` to the pending call `index`; a promise only if it is a new one. */
  step(from: Point, index: number, answer: Answer): Point | Promise<Point>
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
    begin: (process) => reach(process, []),
    step(from, index, answer) {
      const key =
        answer === UNKNOWN ? `${String(index)}?` : `${String(index)}${JSON.stringify(answer)}`
      const known = from.next.get(key)
      if (known !== undefined) return known
      return reach(from.process, [...from.history, [index, answer]]).then((point) => {
        from.next.set(key, point)
        return point
      })
    },
    executions: () => points,
  }
}

/** Until all that can run without another answer has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function replay(
  process: Process,
  history: Point['history'],
): Promise<Pick<Point, 'pending' | 'outcome'>> {
  const calls: {
    call: PendingCall
    resolve: (answer: Json) => void
    reject: (e: Error) => void
  }[] = []
  const ask: Ask = (kind, op) =>
    new Promise((resolve, reject) => {
      calls.push({ call: { index: calls.length, kind, op }, resolve, reject })
    })
  let outcome: Json | undefined
  process.run(ask).then(
    (told) => (outcome = told),
    (error: unknown) => (outcome = ['threw', String(error)]),
  )
  await settled()
  const answered = new Set<number>()
  for (const [index, answer] of history) {
    const asked = calls[index]
    if (asked === undefined) throw new Error(`${process.name} is not deterministic`)
    answered.add(index)
    if (answer === UNKNOWN) asked.reject(new StoreError('lost', { outcome: 'unknown' }))
    else asked.resolve(answer)
    await settled()
  }
  const pending = calls.map(({ call }) => call).filter(({ index }) => !answered.has(index))
  return { pending, outcome }
}
