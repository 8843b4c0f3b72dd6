// Workarounds for optimizations of V8 that make a server slower.
import { executionAsyncResource } from 'node:async_hooks'
import { setFlagsFromString } from 'node:v8'

/** Objects whose hidden class must survive every garbage collection. */
const kept: object[] = []

/**
 * Applies the workarounds to this process. Call it once, early in the process. With async hooks,
 * which no role enables, it would make native callbacks slower.
 */
export function applyV8Workarounds(): void {
  keepTicksFast()
  allocateInYoungGeneration()
}

/**
 * Node.js 24: V8 drops the hidden class of the objects that process.nextTick queues if a garbage
 * collection runs while none is queued. From then on, V8 does not optimize the literal that creates
 * them, and each tick takes about five times as long. A redirect needs several ticks: it took 6 µs
 * more in such a process. Here one queued object is kept, and thereby its hidden class.
 */
function keepTicksFast(): void {
  process.nextTick(() => kept.push(executionAsyncResource()))
}

/**
 * If most objects of a literal survive a minor garbage collection, as they may during a burst of
 * requests, V8 allocates all later ones in the old generation. There they keep whatever they refer
 * to until the next major collection, so that each request leaves up to kilobytes behind.
 */
function allocateInYoungGeneration(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
