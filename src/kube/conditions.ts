// Conditions of an object: `lastTransitionTime` changes only with the condition's `status`.
import type { Condition } from './objects.ts'

/** A condition without the fields that `mergeConditions` adds. */
export type NewCondition = Omit<Condition, 'lastTransitionTime' | 'observedGeneration'>

/** The API server rejects longer messages. */
const MESSAGE_CHARACTERS_MAX = 1024

/** Adds times to `current`; a condition with an unchanged status keeps its time in `previous`. */
export function mergeConditions(
  previous: readonly Condition[],
  current: readonly NewCondition[],
  { nowMs, generation }: { nowMs: number; generation: number },
): Condition[] {
  return current.map(({ type, status, reason, message }) => {
    const before = previous.find((condition) => condition.type === type)
    const lastTransitionTime =
      before?.status === status ? before.lastTransitionTime : formatTime(nowMs)
    return {
      type,
      status,
      reason,
      message: truncate(message),
      lastTransitionTime,
      observedGeneration: generation,
    }
  })
}

/** Formats Unix milliseconds as `metav1.Time`: whole seconds in UTC. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** Formats Unix milliseconds as `metav1.MicroTime`, which requires six fractional digits. */
export function formatMicroTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`
}

function truncate(message: string): string {
  const isShort = message.length <= MESSAGE_CHARACTERS_MAX
  const shown = isShort ? message : `${message.slice(0, MESSAGE_CHARACTERS_MAX - 1)}…`
  // The API server stores half of a surrogate pair as U+FFFD; the status would always differ from
  // the stored one, and be written at each reconcile.
  return shown.toWellFormed()
}
