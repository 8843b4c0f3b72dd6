// Limits at the edge, counted by two limiters together: exact bursts, limits per client and per API
// key, and the limit for clients that guess codes.
import { describe, expect, test } from '@jest/globals'
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { type HttpClient, openHttpClient } from '../kit/http/http-client.ts'
import { inParallel, problemOf } from '../kit/http/machine-clients.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  headersOf,
  jsonOf,
} from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import { isShared } from './stack-state.ts'
import type { LimiterPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 60_000
const TRIES_MAX = 20
/** Creates of one client: its burst, and each second. */
const BURST = 20
const PER_SECOND = 2
/** Within it no bucket gets a hit back. */
const REFILL_MS_MAX = 400
/** What a burst test asks, so many at a time. */
const ASKED = 45
const FLIGHT = 8
const ASK_MS_MAX = 10_000
/** What the tests' rules say of those who try codes from an IPv6 network: so many in 5 s. */
const UNKNOWN_MAX = 20

const createOne = createLinkRequest({ long_url: 'https://example.com/limits' })

/**
 * What `work` gives, so often anew until it is in time and no limiter decided alone meanwhile: one
 * whose Redis is late counts against a share of the limit, and no answer tells. Each time `work`
 * must ask as clients that are new. Of many tries that were all spoilt, gives the last one.
 */
async function untilTogether<T>(
  stack: Stack,
  work: () => Promise<T>,
  isInTime: (result: T) => boolean = () => true,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const before = await decidedAlone(stack)
    const result = await work()
    const isSpoilt = !isInTime(result) || (await decidedAlone(stack)) > before
    if (!isSpoilt || tries === TRIES_MAX) return result
  }
}

/** Whether the limiters had a word in all of them: none came after Envoy's 20 ms. */
const areShared = (answers: readonly RawResponse[]) => answers.every((answer) => isShared(answer))

const remainingOf = (answer: RawResponse) => Number(headerOf(answer, 'X-RateLimit-Remaining'))

/** Tests of it; `apiKey` is one that the rules know. */
export function describeLimits(stackNow: () => Stack, apiKey: string): void {
  describe('limits over two limiters', () => {
    testBursts(stackNow)
    testClients(stackNow, apiKey)
    testWalkers(stackNow)
  })
}

/** Clients that consume their whole limit. */
function testBursts(stackNow: () => Stack): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'a client that sends a burst is admitted up to its burst plus the refill, and no more',
    async () => {
      const httpClient = opened()
      const { answers, tookMs } = await untilTogether(stackNow(), () => burstOf(httpClient))
      httpClient.close()
      // Where the limiter's answer came after Envoy's 20 ms, the edge decided alone.
      const shared = answers.filter((answer) => isShared(answer))
      const late = ASKED - shared.length
      const admitted = shared.filter(({ status }) => status === 201).length
      process.stdout.write(
        `${String(ASKED)} creates at once: ${String(admitted)} admitted in ` +
          `${tookMs.toFixed(0)} ms (burst ${String(BURST)}, ${String(PER_SECOND)} a second), ` +
          `${String(late)} decided by the edge alone\n`,
      )
      expect(admitted).toBeGreaterThanOrEqual(BURST - late)
      expect(admitted).toBeLessThanOrEqual(BURST + Math.floor((tookMs / 1000) * PER_SECOND))
      const denied = shared.filter(({ status }) => status === 429)
      expect(denied.length).toBe(shared.length - admitted)
      for (const answer of denied) {
        expect(jsonOf(answer)).toMatchObject({ status: 429, rule: 'creates-per-client' })
        expect(problemOf(answer)).toBe('rate-limited')
        expect([remainingOf(answer), headersOf(answer, 'Retry-After')]).toEqual([0, ['1']])
      }
      for (const limiter of stackNow().limiters) {
        expect(await decisionsOf(limiter)).toBeGreaterThan(0)
      }
    },
    TEST_MS_MAX,
  )

  test(
    'a client that waits for Retry-After is admitted',
    async () => {
      const httpClient = opened()
      const ask = requestFrom(newAddress(), createOne)
      let answer = await httpClient.send(ask)
      for (let i = 0; i < 100 && answer.status === 201; i++) answer = await httpClient.send(ask)
      expect(answer.status).toBe(429)
      const endMs = performance.now() + Number(headerOf(answer, 'Retry-After')) * 1000
      await waitFor('the time that was told', () => performance.now() >= endMs)
      expect((await httpClient.send(ask)).status).toBe(201)
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** What a new client that asks at once is answered, and how long that takes. */
async function burstOf(
  httpClient: HttpClient,
): Promise<{ answers: RawResponse[]; tookMs: number }> {
  const ask = requestFrom(newAddress(), createOne)
  const answers: RawResponse[] = []
  const startedMs = performance.now()
  await inParallel(FLIGHT, new Array<RawRequest>(ASKED).fill(ask), async (one) => {
    answers.push(await httpClient.send(one))
  })
  return { answers, tookMs: performance.now() - startedMs }
}

/** What identifies a client. */
function testClients(stackNow: () => Stack, apiKey: string): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'a known API key has its own limit, an unknown one has no effect',
    async () => {
      const httpClient = opened()
      const limitsOf = async (key: string) => {
        const ask = createLinkRequest({ long_url: 'https://example.com/k' }, { 'X-API-Key': key })
        const askOnce = async () => [await httpClient.send(requestFrom(newAddress(), ask))]
        const answers = await untilTogether(stackNow(), askOnce, areShared)
        return answers.map((answer) => headerOf(answer, 'X-RateLimit-Limit'))
      }
      expect(await limitsOf(apiKey)).toEqual(['200'])
      expect(await limitsOf('another')).toEqual([String(BURST)])
      httpClient.close()
    },
    TEST_MS_MAX,
  )

  test(
    'clients of one /64 share a bucket; an X-Forwarded-For of the client has no effect',
    async () => {
      const httpClient = opened()
      // Two of one bucket, and one of the bucket beside it.
      const families: readonly ((at: string) => readonly string[])[] = [
        (at) => [`2001:db8:${at}::1`, `2001:db8:${at}:0:ffff::2`, `2001:db8:${at}:1::1`],
        (at) => [
          `192.0.2.1, 10.200.0.${at}`,
          `192.0.2.2, 10.200.0.${at}`,
          `192.0.2.1, 10.201.0.${at}`,
        ],
      ]
      for (const addressesAt of families) {
        let at = 0
        const askEach = async () => {
          const answers: RawResponse[] = []
          const startedMs = performance.now()
          for (const address of addressesAt(String(++at))) {
            answers.push(await httpClient.send(requestFrom(address, createOne)))
          }
          return { answers, tookMs: performance.now() - startedMs }
        }
        const { answers } = await untilTogether(stackNow(), askEach, (seen) => {
          return areShared(seen.answers) && seen.tookMs < REFILL_MS_MAX
        })
        expect(answers.map(remainingOf)).toEqual([19, 18, 19])
      }
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** Clients that guess codes. */
function testWalkers(stackNow: () => Stack): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'a client that guesses codes is denied every code, known ones too, and admitted later',
    async () => {
      const httpClient = opened()
      const code = codeOf(await httpClient.send(requestFrom(newAddress(), createOne)))
      let walkers = 0
      const walkerNow = () => `2001:db8:abcd:${String(walkers)}::1`
      const follow = (path: string, from = walkerNow()) =>
        httpClient.send(requestFrom(from, { path }))
      const walk = async () => {
        walkers++
        let unknown = 0
        let answer = await follow('/walk0')
        while (answer.status === 404 && unknown < 10 * UNKNOWN_MAX) {
          answer = await follow(`/walk${String(++unknown)}`)
        }
        return { unknown, refused: [answer, await follow(`/${code}`)] }
      }
      // Who is just over the limit is let in again by time that goes by, or by a limiter's delay.
      const { unknown, refused } = await untilTogether(stackNow(), walk, (seen) => {
        return seen.refused.every(({ status }) => status === 429)
      })
      expect(refused.map(({ status }) => status)).toEqual([429, 429])
      for (const one of refused) expect(jsonOf(one)['rule']).toBe('unknown-codes-per-ipv6-client')
      expect(unknown).toBeGreaterThanOrEqual(UNKNOWN_MAX)
      process.stdout.write(`a walker met 429 after ${String(unknown)} unknown codes\n`)
      expect((await follow(`/${code}`, newAddress())).status).toBe(302)
      const startedMs = performance.now()
      const isBack = async () => (await follow(`/${code}`)).status === 302
      await waitFor('the walker to be let in again', isBack, TEST_MS_MAX / 2)
      process.stdout.write(
        `let in again after ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`,
      )
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** Decisions that limiters made without Redis, because it timed out. */
async function decidedAlone({ limiters }: Stack): Promise<number> {
  const counts = await Promise.all(
    limiters.map((limiter) => decisionsOf(limiter, 'source="fallback"')),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Decisions that a limiter has made; those with this label, or all of them. */
async function decisionsOf(limiter: LimiterPod, label = ''): Promise<number> {
  const url = `http://127.0.0.1:${String(limiter.now().ready['adminPort'])}/metrics`
  const lines = (
    await (await fetch(url, { signal: AbortSignal.timeout(ASK_MS_MAX) })).text()
  ).match(/^curtail_limiter_decisions_total.*$/gm)
  return (lines ?? [])
    .filter((line) => line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
