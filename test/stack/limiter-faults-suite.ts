// Limiters and their Redis fail under load: no client request fails, and limits are shared again
// soon after they recover.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createLinkRequest } from '../kit/http/client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { headerOf, jsonOf } from '../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Load } from './load.ts'
import {
  healthyOf,
  isLocal,
  makeLinks,
  startRedirects,
  injectFault,
  waitForSharedLimits,
  untilWhole,
} from './stack-state.ts'
import type { LimiterPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
/** The edge looks for limiters twice a second, and is to have them back within 2 s: five times. */
const BACK_MS_MAX = 10_000
/** Answers that a load waits for during a fault. */
const ANSWERS = 300
const createOne = createLinkRequest({ long_url: 'https://example.com/faults' })

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
    'one limiter is killed and restarted',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(stack, { fault: 'limiter killed', load: load() }, async (running) => {
        await oneOf(stack).kill()
        await running.more(ANSWERS)
        await waitForSharedLimits(stack)
        await oneOf(stack).restart()
        const startedMs = performance.now()
        await waitFor('both', async () => (await healthyOf(stack, 'ratelimit')) === 2, BACK_MS_MAX)
        const backMs = Math.round(performance.now() - startedMs)
        return `used again ${String(backMs)} ms after`
      })
    },
    TEST_MS_MAX,
  )

  test(
    'one limiter hangs and resumes',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(stack, { fault: 'limiter hung', load: load() }, async (running) => {
        oneOf(stack).pause()
        await waitFor('one', async () => (await healthyOf(stack, 'ratelimit')) === 1, BACK_MS_MAX)
        await running.more(ANSWERS)
        await waitForSharedLimits(stack)
        oneOf(stack).resume()
        const startedMs = performance.now()
        await waitFor('both', async () => (await healthyOf(stack, 'ratelimit')) === 2, BACK_MS_MAX)
        const backMs = Math.round(performance.now() - startedMs)
        return `used again ${String(backMs)} ms after`
      })
    },
    TEST_MS_MAX,
  )
}

/** Both limiters. */
function testAllAway({ stackNow, load }: Faulty): void {
  test(
    'both limiters are unavailable: the limits of the edge apply per client until they recover',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(stack, { fault: 'both limiters away', load: load() }, async (running) => {
        await Promise.all(stack.limiters.map((limiter) => limiter.kill()))
        const httpClient = openHttpClient(stack.port)
        const ask = requestFrom(newAddress(), createOne)
        let admitted = 0
        let answer = await httpClient.send(ask)
        for (; answer.status === 201 && admitted < 200; admitted++)
          answer = await httpClient.send(ask)
        expect([answer.status, isLocal(answer)]).toEqual([429, true])
        expect(admitted).toBeGreaterThanOrEqual(20)
        expect(headerOf(answer, 'Retry-After')).toBe('1')
        expect(headerOf(answer, 'X-RateLimit-Remaining')).toBe('0')
        const reset = Number(headerOf(answer, 'X-RateLimit-Reset'))
        expect(Math.abs(reset - Date.now() / 1000)).toBeLessThan(5)
        expect(jsonOf(answer)).toMatchObject({ status: 429, rule: 'local' })
        expect((await httpClient.send(requestFrom(newAddress(), createOne))).status).toBe(201)
        httpClient.close()
        await running.more(ANSWERS)
        await Promise.all(stack.limiters.map((limiter) => limiter.restart()))
        const backMs = await withinDeadline(
          'the shared limit',
          waitForSharedLimits(stack),
          BACK_MS_MAX,
        )
        return `limits shared ${String(backMs)} ms after they were back`
      })
    },
    TEST_MS_MAX,
  )
}

/** The Redis that they share. */
function testCountersAway({ stackNow, load }: Faulty): void {
  test(
    'their Redis is unavailable: each limiter counts alone until Redis recovers',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(
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
          await waitForSharedLimits(stack) // the limiters answer, each with its share of the limit
          await stack.counters.restart()
          const startedMs = performance.now()
          await waitFor('limiters that count together', isAway(0), BACK_MS_MAX)
          const backMs = Math.round(performance.now() - startedMs)
          return `counted together ${String(backMs)} ms after it was back`
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** The limiter's metric of its Redis: 1 while the circuit breaker is open. */
async function awayOf(limiter: LimiterPod): Promise<number> {
  const url = `http://127.0.0.1:${String(limiter.now().ready['adminPort'])}/metrics`
  const text = await (await fetch(url)).text()
  return Number(/^curtail_limiter_store_unavailable (\d)$/m.exec(text)?.[1])
}
