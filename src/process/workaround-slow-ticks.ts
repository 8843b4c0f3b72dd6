// Workaround for Node.js 24: V8 drops the hidden class of the objects that process.nextTick queues
// if a garbage collection runs while none is queued. From then on, V8 does not optimize the literal
// that creates them, and each tick takes about five times as long. A redirect needs several ticks:
// it took 6 µs more in such a process.
import { executionAsyncResource } from 'node:async_hooks'

/** Objects whose hidden class must survive every garbage collection. */
const kept: object[] = []

/**
 * Keeps one queued object, and thereby its hidden class. Call it once, early in the process. With
 * async hooks, which no role enables, it would make native callbacks slower.
 */
export function keepTicksFast(): void {
  process.nextTick(() => kept.push(executionAsyncResource()))
}
