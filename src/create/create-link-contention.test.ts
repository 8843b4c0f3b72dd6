// Concurrent creates with one Idempotency-Key, on a store whose calls contend: each may fail
// before or after it took effect, as rounds of Paxos do. The clock is simulated.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createMetrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryIntentStore } from '../../test/kit/stores/memory-intent-store.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import { createLink } from './create-link.ts'

/** The outcome of one store call. */
type Outcome = 'done' | 'failed' | 'done, but reported as failed'

const metrics = createMetrics()
const NOW_MS = 1_790_000_000_000

/** Timers of a clock that moves only when everything else has settled. */
function createSimulatedClock() {
  let nowMs = NOW_MS
  const timers: { atMs: number; wake: () => void }[] = []
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    pause: (ms: number) =>
      new Promise<void>((resolve) => {
        timers.push({ atMs: nowMs + ms, wake: resolve })
      }),
    /** Advances the clock until `work` settles; resolves to its result. */
    async run<T>(work: Promise<T>): Promise<T> {
      const running = { isDone: false }
      const done = work.finally(() => (running.isDone = true))
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve))
        if (running.isDone) return done
        timers.sort((one, other) => one.atMs - other.atMs)
        const next = timers.shift()
        if (next === undefined) throw new Error('the work is not waiting')
        nowMs = next.atMs
        next.wake()
      }
    },
  }
}

test('of 2 to 32 creates with one key, one creates the link and the others replay it', async () => {
  const outcome = fc.constantFrom<Outcome>('done', 'failed', 'done, but reported as failed')
  const run = fc.record({
    clients: fc.integer({ min: 2, max: 32 }),
    alias: fc.constantFrom(undefined, 'mine'),
    outcomes: fc.array(outcome, { maxLength: 64 }),
    draws: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 16 }),
  })
  const property = fc.asyncProperty(run, async ({ clients, alias, outcomes, draws }) => {
    const clock = createSimulatedClock()
    let calls = 0
    const contended = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
      return async (...args: A) => {
        const outcome = outcomes[calls++] ?? 'done'
        const result = outcome === 'failed' ? undefined : await call(...args)
        if (outcome === 'done') return result as T
        throw new StoreError('contention', { outcome: 'unknown' })
      }
    }
    const links = createMemoryLinkStore()
    const intents = createMemoryIntentStore(clock.nowMs)
    let codes = 0
    let drawn = 0
    const deps = {
      links: {
        insertIfAbsent: contended(links.insertIfAbsent.bind(links)),
        readSerial: contended(links.readSerial.bind(links)),
      },
      intents: {
        insertIfAbsent: contended(intents.insertIfAbsent.bind(intents)),
        readSerial: contended(intents.readSerial.bind(intents)),
        move: contended(intents.move.bind(intents)),
      },
      supply: { take: () => ({ kind: 'code' as const, code: `gggg${String(100 + codes++)}` }) },
      invalidateCaches: () => undefined,
      nowMs: clock.nowMs,
      monotonicMs: clock.nowMs,
      pause: clock.pause,
      random: () => draws[drawn++ % draws.length] ?? 0,
      metrics,
    }
    const body = { longUrl: 'https://x.example/', alias, ttlDays: 1 }
    const request = { ...body, creatorId: null, idempotencyKey: 'k' }
    const creates = Array.from({ length: clients }, () => createLink(deps, request))
    const results = await clock.run(Promise.all(creates))
    const replays = results.map((one) => (one.kind === 'created' ? one.replayed : one.kind))
    expect(replays.filter((replayed) => replayed !== true)).toEqual([false])
    const codesCreated = results.flatMap((one) => (one.kind === 'created' ? [one.link.code] : []))
    expect(new Set(codesCreated).size).toBe(1)
  })
  await fc.assert(property, { numRuns: 150 })
})

test('pauses are random, so that contending clients do not collide on every retry', async () => {
  const pauses: number[] = []
  const failing = () => Promise.reject(new StoreError('contention', { outcome: 'unknown' }))
  let nowMs = NOW_MS
  const deps = {
    links: createMemoryLinkStore(),
    intents: { readSerial: failing, insertIfAbsent: failing, move: failing },
    supply: { take: () => ({ kind: 'pool-empty' as const }) },
    invalidateCaches: () => undefined,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    pause(ms: number) {
      pauses.push(ms)
      nowMs += ms
      return Promise.resolve()
    },
    metrics,
  }
  const body = { longUrl: 'https://x.example/', alias: 'a', ttlDays: 1 }
  const request = { ...body, creatorId: null, idempotencyKey: 'k' }
  await createLink(deps, request)
  const first = pauses.splice(0)
  await createLink(deps, request)
  expect(pauses).not.toEqual(first)
  expect(new Set(first).size).toBeGreaterThan(5)
})
