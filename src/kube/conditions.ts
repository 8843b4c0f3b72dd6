// Conditions of a status: a merge keeps `lastTransitionTime` until the status changes.
import type { Condition } from './objects.ts'

/** A condition before the merge adds its times. */
export type NewCondition = Omit<Condition, 'lastTransitionTime' | 'observedGeneration'>

/** The API server rejects longer messages. */
const MESSAGE_CHARACTERS_MAX = 1024

/** `now` with the transition times of `before`, in the order of `now`. */
export function mergeConditions(
  before: readonly Condition[],
  now: readonly NewCondition[],
  { nowMs, generation }: { nowMs: number; generation: number },
): Condition[] {
  return now.map(({ type, status, reason, message }) => {
    const previous = before.find((condition) => condition.type === type)
    const lastTransitionTime =
      previous?.status === status ? previous.lastTransitionTime : secondTime(nowMs)
    const truncated = truncate(message)
    return {
      type,
      status,
      reason,
      message: truncated,
      lastTransitionTime,
      observedGeneration: generation,
    }
  })
}

/** A time in the format of `metav1.Time`: whole seconds in UTC. */
export function secondTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** A time in the format of `metav1.MicroTime`, which rejects milliseconds. */
export function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`
}

function truncate(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS_MAX) return message
  return `${message.slice(0, MESSAGE_CHARACTERS_MAX - 1)}…`
}
