// A scheduler for tests, which advance its clock; due calls run in order.
import type { Scheduler } from '../../src/kube/scheduler.ts'

/** A scheduler whose time the test advances. */
export interface FakeScheduler extends Scheduler {
  /** Advances the time; promises settle between two calls that are due. */
  readonly advance: (ms: number) => Promise<void>
  /** The number of pending calls. */
  readonly waiting: () => number
}

/** Creates a scheduler whose clock starts at 0. */
export function createFakeScheduler(): FakeScheduler {
  let now = 0
  let serial = 0
  const due = new Map<number, { readonly atMs: number; readonly call: () => void }>()
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    nowMs: () => now,
    after(ms, call) {
      const id = ++serial
      due.set(id, { atMs: now + ms, call })
      return () => due.delete(id)
    },
    async advance(ms) {
      const endMs = now + ms
      await settle()
      for (;;) {
        const [next] = [...due].sort(([, one], [, other]) => one.atMs - other.atMs)
        if (next === undefined || next[1].atMs > endMs) break
        due.delete(next[0])
        now = Math.max(now, next[1].atMs)
        next[1].call()
        await settle()
      }
      now = endMs
    },
    waiting: () => due.size,
  }
}
