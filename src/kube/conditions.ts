// Conditions of a status: who changes one keeps the time at which its status last turned.
import type { Condition } from './objects.ts'

/** A condition as it is to be said now. */
export type ConditionNow = Omit<Condition, 'lastTransitionTime' | 'observedGeneration'>

/** The API server refuses a longer message. */
const MESSAGE_CHARACTERS_MAX = 1024

/** `now` with the times of `before`, in the order of `now`. */
export function mergeConditions(
  before: readonly Condition[],
  now: readonly ConditionNow[],
  { nowMs, generation }: { nowMs: number; generation: number },
): Condition[] {
  return now.map(({ type, status, reason, message }) => {
    const seen = before.find((condition) => condition.type === type)
    const lastTransitionTime = seen?.status === status ? seen.lastTransitionTime : secondTime(nowMs)
    const cut = cutMessage(message)
    return {
      type,
      status,
      reason,
      message: cut,
      lastTransitionTime,
      observedGeneration: generation,
    }
  })
}

/** A time as the API keeps it in `metav1.Time`: whole seconds in UTC. */
export function secondTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** A time as the API keeps it in `metav1.MicroTime`; it refuses three digits. */
export function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`
}

function cutMessage(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS_MAX) return message
  return `${message.slice(0, MESSAGE_CHARACTERS_MAX - 1)}…`
}
