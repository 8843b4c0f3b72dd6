// Limiters and their Redis that fail under load: no client is failed by it, and limits are shared
// again soon after they are back.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createAsk } from '../component/client.ts'
import { openAsker } from '../component/asker.ts'
import { headerOf, jsonOf } from '../component/raw-http.ts'
import { inTime, waitFor } from '../component/wait-for.ts'
import { askFrom, newAddress } from './edge-client.ts'
import type { Load } from './load.ts'
import {
  healthyOf,
  isLocal,
  makeLinks,
  startRedirects,
  seeFault,
  untilSharedAgain,
  untilWhole,
} from './stack-state.ts'
import type { LimiterPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
/** The edge looks for limiters twice a second, and is to have them back within 2 s: five times. */
const BACK_MS_MAX = 10_000
/** Answers that a load waits for during a fault. */
const ANSWERS = 300
const createOne = createAsk({ long_url: 'https://example.com/faults' })

/** The stack, and clients that follow links in it meanwhile. */
interface Faulty {
  readonly stackNow: () => Stack
  readonly load: () => Load
}

/** Tests of it. */
export function describeLimiterFaults(stackNow: () => Stack): void {
  let codes: readonly string[] = []

  beforeAll(async () => {
    codes = await makeLinks(stackNow(), 20)
  }, TEST_MS_MAX)

  const load = () => startRedirects(codes, () => stackNow().port)

  describe('limiters that fail under load', () => {
    testOneAway({ stackNow, load })
    testAllAway({ stackNow, load })
    testCountersAway({ stackNow, load })
  })
}

function oneOf(stack: Stack): LimiterPod {
  const [one] = stack.limiters
  if (one === undefined) throw new Error('there is no limiter')
  return one
}

/** One limiter of two. */
function testOneAway({ stackNow, load }: Faulty): void {
  test(
    'one is killed, and comes back',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await seeFault(stack, { fault: 'limiter killed', load: load() }, async (running) => {
        await oneOf(stack).kill()
        await running.more(ANSWERS)
        await untilSharedAgain(stack)
        await oneOf(stack).restart()
        const begunMs = performance.now()
        await waitFor('both', async () => (await healthyOf(stack, 'ratelimit')) === 2, BACK_MS_MAX)
        const backMs = Math.round(performance.now() - begunMs)
        return `used again ${String(backMs)} ms after`
      })
    },
    TEST_MS_MAX,
  )

  test(
    'one hangs, and goes on',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await seeFault(stack, { fault: 'limiter hung', load: load() }, async (running) => {
        oneOf(stack).pause()
        await waitFor('one', async () => (await healthyOf(stack, 'ratelimit')) === 1, BACK_MS_MAX)
        await running.more(ANSWERS)
        await untilSharedAgain(stack)
        oneOf(stack).resume()
        const begunMs = performance.now()
        await waitFor('both', async () => (await healthyOf(stack, 'ratelimit')) === 2, BACK_MS_MAX)
        const backMs = Math.round(performance.now() - begunMs)
        return `used again ${String(backMs)} ms after`
      })
    },
    TEST_MS_MAX,
  )
}

/** Both limiters. */
function testAllAway({ stackNow, load }: Faulty): void {
  test(
    'both are away: limits of the edge bind each client, until they are back',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await seeFault(stack, { fault: 'both limiters away', load: load() }, async (running) => {
        await Promise.all(stack.limiters.map((limiter) => limiter.kill()))
        const asker = openAsker(stack.port)
        const ask = askFrom(newAddress(), createOne)
        let admitted = 0
        let answer = await asker.ask(ask)
        for (; answer.status === 201 && admitted < 200; admitted++) answer = await asker.ask(ask)
        expect([answer.status, isLocal(answer)]).toEqual([429, true])
        expect(admitted).toBeGreaterThanOrEqual(20)
        expect(headerOf(answer, 'Retry-After')).toBe('1')
        expect(headerOf(answer, 'X-RateLimit-Remaining')).toBe('0')
        const reset = Number(headerOf(answer, 'X-RateLimit-Reset'))
        expect(Math.abs(reset - Date.now() / 1000)).toBeLessThan(5)
        expect(jsonOf(answer)).toMatchObject({ status: 429, rule: 'local' })
        expect((await asker.ask(askFrom(newAddress(), createOne))).status).toBe(201)
        asker.close()
        await running.more(ANSWERS)
        await Promise.all(stack.limiters.map((limiter) => limiter.restart()))
        const backMs = await inTime('the shared limit', untilSharedAgain(stack), BACK_MS_MAX)
        return `limits shared ${String(backMs)} ms after they were back`
      })
    },
    TEST_MS_MAX,
  )
}

/** The Redis that they share. */
function testCountersAway({ stackNow, load }: Faulty): void {
  test(
    'their Redis is gone: they count alone, and together again once it is back',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await seeFault(
        stack,
        { fault: 'Redis of the counters gone', load: load() },
        async (running) => {
          await stack.counters.kill()
          const isAway = (away: number) => async () => {
            const states = stack.limiters.map((limiter) => awayOf(limiter))
            return (await Promise.all(states)).every((state) => state === away)
          }
          await waitFor('limiters that count alone', isAway(1))
          await running.more(ANSWERS)
          await untilSharedAgain(stack) // the limiters answer, each with its share of the limit
          await stack.counters.restart()
          const begunMs = performance.now()
          await waitFor('limiters that count together', isAway(0), BACK_MS_MAX)
          const backMs = Math.round(performance.now() - begunMs)
          return `counted together ${String(backMs)} ms after it was back`
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** What the limiter says of its Redis: 1 while it is left alone. */
async function awayOf(limiter: LimiterPod): Promise<number> {
  const url = `http://127.0.0.1:${String(limiter.now().ready['adminPort'])}/metrics`
  const text = await (await fetch(url)).text()
  return Number(/^curtail_limiter_store_unavailable (\d)$/m.exec(text)?.[1])
}
