// Limits at the edge, counted over two limiters: to the hit, by client, by key, and for those who
// try codes.
import { describe, expect, test } from '@jest/globals'
import { codeOf, createAsk } from '../component/client.ts'
import { inParallel, openAsker, problemOf } from '../component/machine-clients.ts'
import { type Answer, type Ask, headerOf, headersOf, jsonOf } from '../component/raw-http.ts'
import { waitFor } from '../component/wait-for.ts'
import { askFrom, newAddress } from './edge-client.ts'
import { isShared } from './stack-state.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 60_000
const TRIES_MAX = 20
/** Creates of one client: its burst, and each second. */
const BURST = 20
const PER_SECOND = 2
/** What a burst test asks, so many at a time. */
const ASKED = 45
const FLIGHT = 8
/** What the tests' rules say of those who try codes from an IPv6 network: so many in 5 s. */
const UNKNOWN_MAX = 20

const createOne = createAsk({ long_url: 'https://example.com/limits' })

/** Answers of one kind of client, so often anew until the limiter had a word in all of them. */
async function untilShared(work: () => Promise<Answer[]>): Promise<Answer[]> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answers = await work()
    if (answers.every((answer) => isShared(answer))) return answers
  }
  throw new Error('the limiter was late in each of many tries')
}

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
      const ask = askFrom(newAddress(), createOne)
      const answers: Answer[] = []
      const begunMs = performance.now()
      await inParallel(FLIGHT, new Array<Ask>(ASKED).fill(ask), async (one) => {
        answers.push(await asker.ask(one))
      })
      const tookMs = performance.now() - begunMs
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
        expect(await decisionsOf(limiter.now().ready)).toBeGreaterThan(0)
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

/** Who counts as one client. */
function testClients(stackNow: () => Stack, apiKey: string): void {
  const opened = () => openAsker(stackNow().port)

  test(
    'a key that is known has a limit of its own, another one changes nothing',
    async () => {
      const asker = opened()
      const limitsOf = async (key: string) => {
        const ask = createAsk({ long_url: 'https://example.com/k' }, { 'X-API-Key': key })
        const answers = await untilShared(async () => [await asker.ask(askFrom(newAddress(), ask))])
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
      const pairs: readonly ((at: number) => readonly [string, string])[] = [
        (at) => [`2001:db8:${at.toString(16)}::1`, `2001:db8:${at.toString(16)}:0:ffff::2`],
        (at) => [`192.0.2.1, 10.200.0.${String(at)}`, `192.0.2.2, 10.200.0.${String(at)}`],
      ]
      for (const pair of pairs) {
        let at = 0
        const [one, two] = await untilShared(async () => {
          const [first, second] = pair(++at)
          const answer = await asker.ask(askFrom(first, createOne))
          return [answer, await asker.ask(askFrom(second, createOne))]
        })
        expect([one, two].map((answer) => answer && remainingOf(answer))).toEqual([19, 18])
      }
      const [other] = await untilShared(async () => [
        await asker.ask(askFrom('2001:db8:1:1::1', createOne)),
      ])
      expect(other && remainingOf(other)).toBeGreaterThan(17)
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
      const walker = '2001:db8:abcd::1'
      const follow = (path: string, from = walker) => asker.ask(askFrom(from, { path }))
      let unknown = 0
      let answer = await follow('/walk0')
      while (answer.status === 404 && unknown < 10 * UNKNOWN_MAX) {
        answer = await follow(`/walk${String(++unknown)}`)
      }
      const refused = [answer, await follow(`/${code}`)]
      for (const one of refused) {
        expect([one.status, jsonOf(one)['rule']]).toEqual([429, 'unknown-codes-per-ipv6-client'])
      }
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

async function decisionsOf(ready: Readonly<Record<string, unknown>>): Promise<number> {
  const url = `http://127.0.0.1:${String(ready['adminPort'])}/metrics`
  const lines = (await (await fetch(url)).text()).match(/^curtail_limiter_decisions_total.*$/gm)
  return (lines ?? []).reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
