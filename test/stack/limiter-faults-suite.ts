// Limiters and their Redis fail under load: no client request fails, and limits are shared soon
// after the recovery.
import { beforeAll, expect, test } from '@jest/globals'
import { createLinkRequest } from '../kit/http/client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { headerOf, jsonOf } from '../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Load } from './load.ts'
import {
  healthyOf,
  isLocal,
  createLinks,
  startRedirects,
  injectFault,
  waitForSharedLimits,
  restoreStack,
} from './stack-state.ts'
import type { LimiterPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
/** Five times the 2 s in which the edge, by its health checks, must use recovered limiters. */
const RECOVERY_MS_MAX = 10_000
/** Responses that a load waits for during a fault. */
const RESPONSES = 300
const createOne = createLinkRequest({ long_url: 'https://example.com/faults' })

/** The stack, and a load of redirects. */
interface StackUnderLoad {
  readonly stackNow: () => Stack
  readonly load: () => Load
}

/** The `limiter-faults` suite. */
export function testLimiterFaults(stackNow: () => Stack): void {
  let codes: readonly string[] = []

  beforeAll(async () => {
    codes = await createLinks(stackNow(), 20)
  }, TEST_MS_MAX)

  const load = () => startRedirects(codes, () => stackNow().port)

  testOneUnavailable({ stackNow, load })
  testAllUnavailable({ stackNow, load })
  testCountersUnavailable({ stackNow, load })
}

function firstOf(stack: Stack): LimiterPod {
  const [first] = stack.limiters
  if (first === undefined) throw new Error('the stack has no limiter')
  return first
}

/** Faults of one of the two limiters. */
function testOneUnavailable({ stackNow, load }: StackUnderLoad): void {
  test(
    'one limiter is killed and restarted',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(stack, { fault: 'limiter killed', load: load() }, async (running) => {
        await firstOf(stack).kill()
        await running.waitForResponses(RESPONSES)
        await waitForSharedLimits(stack)
        await firstOf(stack).restart()
        const startedMs = performance.now()
        await waitFor(
          'both',
          async () => (await healthyOf(stack, 'ratelimit')) === 2,
          RECOVERY_MS_MAX,
        )
        const recoveryMs = Math.round(performance.now() - startedMs)
        return `available again ${String(recoveryMs)} ms after its restart`
      })
    },
    TEST_MS_MAX,
  )

  test(
    'one limiter hangs and resumes',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(stack, { fault: 'limiter hung', load: load() }, async (running) => {
        firstOf(stack).pause()
        await waitFor(
          'one',
          async () => (await healthyOf(stack, 'ratelimit')) === 1,
          RECOVERY_MS_MAX,
        )
        await running.waitForResponses(RESPONSES)
        await waitForSharedLimits(stack)
        firstOf(stack).resume()
        const startedMs = performance.now()
        await waitFor(
          'both',
          async () => (await healthyOf(stack, 'ratelimit')) === 2,
          RECOVERY_MS_MAX,
        )
        const recoveryMs = Math.round(performance.now() - startedMs)
        return `available again ${String(recoveryMs)} ms after it resumed`
      })
    },
    TEST_MS_MAX,
  )
}

/** Faults of both limiters. */
function testAllUnavailable({ stackNow, load }: StackUnderLoad): void {
  test(
    'both limiters are unavailable: the limits of the edge apply per client until they recover',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(
        stack,
        { fault: 'both limiters unavailable', load: load() },
        async (running) => {
          await Promise.all(stack.limiters.map((limiter) => limiter.kill()))
          const httpClient = openHttpClient(stack.port)
          const request = requestFrom(newAddress(), createOne)
          let admitted = 0
          let response = await httpClient.send(request)
          for (; response.status === 201 && admitted < 200; admitted++)
            response = await httpClient.send(request)
          expect([response.status, isLocal(response)]).toEqual([429, true])
          expect(admitted).toBeGreaterThanOrEqual(20)
          expect(headerOf(response, 'Retry-After')).toBe('1')
          expect(headerOf(response, 'X-RateLimit-Remaining')).toBe('0')
          const reset = Number(headerOf(response, 'X-RateLimit-Reset'))
          expect(Math.abs(reset - Date.now() / 1000)).toBeLessThan(5)
          expect(jsonOf(response)).toMatchObject({ status: 429, rule: 'local' })
          expect((await httpClient.send(requestFrom(newAddress(), createOne))).status).toBe(201)
          httpClient.close()
          await running.waitForResponses(RESPONSES)
          await Promise.all(stack.limiters.map((limiter) => limiter.restart()))
          const recoveryMs = await withinDeadline(
            'the shared limit',
            waitForSharedLimits(stack),
            RECOVERY_MS_MAX,
          )
          return `limits shared ${String(recoveryMs)} ms after the restart`
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** Faults of the Redis of the counters. */
function testCountersUnavailable({ stackNow, load }: StackUnderLoad): void {
  test(
    'their Redis is unavailable: each limiter counts locally until Redis recovers',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(
        stack,
        { fault: 'Redis of the counters killed', load: load() },
        async (running) => {
          await stack.counters.kill()
          const allReport = (expected: number) => async () => {
            const states = stack.limiters.map((limiter) => storeUnavailable(limiter))
            return (await Promise.all(states)).every((state) => state === expected)
          }
          await waitFor('limiters that count locally', allReport(1))
          await running.waitForResponses(RESPONSES)
          await waitForSharedLimits(stack) // each limiter applies its share of the limit
          await stack.counters.restart()
          const startedMs = performance.now()
          await waitFor('limiters that share counters', allReport(0), RECOVERY_MS_MAX)
          const recoveryMs = Math.round(performance.now() - startedMs)
          return `counters shared ${String(recoveryMs)} ms after its restart`
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** The limiter's metric of the state of its Redis: 1 while the circuit breaker is open. */
async function storeUnavailable(limiter: LimiterPod): Promise<number> {
  const url = `http://127.0.0.1:${String(limiter.now().ready['adminPort'])}/metrics`
  const metrics = await (await fetch(url)).text()
  return Number(/^curtail_limiter_store_unavailable (\d)$/m.exec(metrics)?.[1])
}
