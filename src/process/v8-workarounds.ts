// Workarounds for behaviour of V8 that slows servers down.
import { executionAsyncResource } from 'node:async_hooks'
import { setFlagsFromString } from 'node:v8'

/** Objects whose hidden class must survive every garbage collection. */
const kept: object[] = []

/**
 * Node.js 24: V8 drops the hidden class of the objects that process.nextTick queues if a garbage
 * collection runs while none is queued. From then on, V8 does not optimize the literal that creates
 * them, and each tick takes about five times as long. A redirect needs several ticks: it took 6 µs
 * more in such a process. This keeps one queued object, and thereby its hidden class. Call it once,
 * early in the process. With async hooks, which no role enables, native callbacks would be slower.
 */
export function keepTicksFast(): void {
  process.nextTick(() => kept.push(executionAsyncResource()))
}

/**
 * If most objects of a literal survive a minor garbage collection, as they may during a burst of
 * requests, V8 allocates all later ones in the old generation. There they keep whatever they refer
 * to until the next major collection, so that a request leaves up to several kilobytes behind.
 * Literals for which V8 has decided this before the call are not affected.
 *
 * Call it once the process has started: V8 rejects compiled modules that were written with other
 * flags (compile-cache.js). Threads that start later have their own folder of compiled modules.
 */
export function allocateInYoungGeneration(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
