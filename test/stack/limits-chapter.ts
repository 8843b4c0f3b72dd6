// Limits at the edge, counted over two limiters: to the hit, by client, by key, and for those who
// try codes.
import { describe, expect, test } from '@jest/globals'
import { codeOf, createAsk } from '../component/client.ts'
import { type Asker, openAsker } from '../component/asker.ts'
import { inParallel, problemOf } from '../component/machine-clients.ts'
import { type Answer, type Ask, headerOf, headersOf, jsonOf } from '../component/raw-http.ts'
import { waitFor } from '../component/wait-for.ts'
import { askFrom, newAddress } from './edge-client.ts'
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

const createOne = createAsk({ long_url: 'https://example.com/limits' })

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
const areShared = (answers: readonly Answer[]) => answers.every((answer) => isShared(answer))

const remainingOf = (answer: Answer) => Number(headerOf(answer, 'X-RateLimit-Remaining'))

/** Tests of it; `apiKey` is one that the rules know. */
export function describeLimits(stackNow: () => Stack, apiKey: string): void {
  describe('limits over two limiters', () => {
    testBursts(stackNow)
    testClients(stackNow, apiKey)
    testWalkers(stackNow)
  })
}

/** Clients that use up their limit. */
function testBursts(stackNow: () => Stack): void {
  const opened = () => openAsker(stackNow().port)

  test(
    'a client that asks at once gets its burst and what time brought back, and not one more',
    async () => {
      const asker = opened()
      const { answers, tookMs } = await untilTogether(stackNow(), () => burstOf(asker))
      asker.close()
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
    'who waits as long as it is told is let through',
    async () => {
      const asker = opened()
      const ask = askFrom(newAddress(), createOne)
      let answer = await asker.ask(ask)
      for (let i = 0; i < 100 && answer.status === 201; i++) answer = await asker.ask(ask)
      expect(answer.status).toBe(429)
      const endMs = performance.now() + Number(headerOf(answer, 'Retry-After')) * 1000
      await waitFor('the time that was told', () => performance.now() >= endMs)
      expect((await asker.ask(ask)).status).toBe(201)
      asker.close()
    },
    TEST_MS_MAX,
  )
}

/** What a new client that asks at once is answered, and how long that takes. */
async function burstOf(asker: Asker): Promise<{ answers: Answer[]; tookMs: number }> {
  const ask = askFrom(newAddress(), createOne)
  const answers: Answer[] = []
  const begunMs = performance.now()
  await inParallel(FLIGHT, new Array<Ask>(ASKED).fill(ask), async (one) => {
    answers.push(await asker.ask(one))
  })
  return { answers, tookMs: performance.now() - begunMs }
}

/** Who counts as one client. */
function testClients(stackNow: () => Stack, apiKey: string): void {
  const opened = () => openAsker(stackNow().port)

  test(
    'a key that is known has a limit of its own, another one changes nothing',
    async () => {
      const asker = opened()
      const limitsOf = async (key: string) => {
        const ask = createAsk({ long_url: 'https://example.com/k' }, { 'X-API-Key': key })
        const askOnce = async () => [await asker.ask(askFrom(newAddress(), ask))]
        const answers = await untilTogether(stackNow(), askOnce, areShared)
        return answers.map((answer) => headerOf(answer, 'X-RateLimit-Limit'))
      }
      expect(await limitsOf(apiKey)).toEqual(['200'])
      expect(await limitsOf('another')).toEqual([String(BURST)])
      asker.close()
    },
    TEST_MS_MAX,
  )

  test(
    'clients of one /64 share a bucket; what a client says of itself changes nothing',
    async () => {
      const asker = opened()
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
          const answers: Answer[] = []
          const begunMs = performance.now()
          for (const address of addressesAt(String(++at))) {
            answers.push(await asker.ask(askFrom(address, createOne)))
          }
          return { answers, tookMs: performance.now() - begunMs }
        }
        const { answers } = await untilTogether(stackNow(), askEach, (seen) => {
          return areShared(seen.answers) && seen.tookMs < REFILL_MS_MAX
        })
        expect(answers.map(remainingOf)).toEqual([19, 18, 19])
      }
      asker.close()
    },
    TEST_MS_MAX,
  )
}

/** Clients that try codes. */
function testWalkers(stackNow: () => Stack): void {
  const opened = () => openAsker(stackNow().port)

  test(
    'who tries codes is refused every code, known ones too, and let in again later',
    async () => {
      const asker = opened()
      const code = codeOf(await asker.ask(askFrom(newAddress(), createOne)))
      let walkers = 0
      const walkerNow = () => `2001:db8:abcd:${String(walkers)}::1`
      const follow = (path: string, from = walkerNow()) => asker.ask(askFrom(from, { path }))
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
      const begunMs = performance.now()
      const isBack = async () => (await follow(`/${code}`)).status === 302
      await waitFor('the walker to be let in again', isBack, TEST_MS_MAX / 2)
      process.stdout.write(
        `let in again after ${((performance.now() - begunMs) / 1000).toFixed(1)} s\n`,
      )
      asker.close()
    },
    TEST_MS_MAX,
  )
}

/** Decisions that limiters have made alone, as their Redis was late. */
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
