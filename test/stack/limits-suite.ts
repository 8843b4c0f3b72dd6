// Limits at the edge, counted by two limiters together: exact bursts, limits per client and per API
// key, and the limit for clients that guess codes.
import { expect, test } from '@jest/globals'
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

const TEST_MS_MAX = 180_000
/** A client is admitted within this time after it has guessed codes. */
const ADMITTED_MS_MAX = 30_000
const TRIES_MAX = 20
/** The limit of creates per client: its burst, and its rate per second. */
const BURST = 20
const PER_SECOND = 2
/** Within this time no bucket refills by a hit. */
const REFILL_MS_MAX = 400
/** The requests of a burst test, and how many of them are in flight concurrently. */
const REQUESTS = 45
const PARALLEL = 8
const SCRAPE_MS_MAX = 10_000
/** The limit in the tests' rules for unknown codes per IPv6 network in 5 s. */
const UNKNOWN_MAX = 20

const createOne = createLinkRequest({ long_url: 'https://example.com/limits' })

/**
 * The result of `work`, retried until it is valid and no limiter decided without Redis meanwhile: a
 * limiter whose Redis times out applies its share of the limit, which no response shows. Each time,
 * `work` must use new clients. After `TRIES_MAX` tries, the last result.
 */
async function untilShared<T>(
  stack: Stack,
  work: () => Promise<T>,
  isValid: (result: T) => boolean = () => true,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const before = await decidedAlone(stack)
    const result = await work()
    const isInvalid = !isValid(result) || (await decidedAlone(stack)) > before
    if (!isInvalid || tries === TRIES_MAX) return result
  }
}

/** Whether the limiters decided all of them, each within Envoy's 20 ms. */
const allShared = (responses: readonly RawResponse[]) =>
  responses.every((response) => isShared(response))

const remainingOf = (response: RawResponse) => Number(headerOf(response, 'X-RateLimit-Remaining'))

/** The `limits` suite; `apiKey` is in the rules. */
export function testLimits(stackNow: () => Stack, apiKey: string): void {
  testBursts(stackNow)
  testClients(stackNow, apiKey)
  testGuessers(stackNow)
}

/** Clients that consume their whole limit. */
function testBursts(stackNow: () => Stack): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'a client that sends a burst is admitted exactly up to its burst plus the refill',
    async () => {
      const httpClient = opened()
      const { responses, tookMs } = await untilShared(stackNow(), () => burstOf(httpClient))
      httpClient.close()
      // The edge decided the others alone, as the limiter exceeded Envoy's 20 ms.
      const shared = responses.filter((response) => isShared(response))
      const undecided = REQUESTS - shared.length
      const admitted = shared.filter(({ status }) => status === 201).length
      process.stdout.write(
        `${String(REQUESTS)} concurrent creates: ${String(admitted)} admitted in ` +
          `${tookMs.toFixed(0)} ms (burst ${String(BURST)}, ${String(PER_SECOND)} a second), ` +
          `${String(undecided)} decided by the edge alone\n`,
      )
      expect(admitted).toBeGreaterThanOrEqual(BURST - undecided)
      expect(admitted).toBeLessThanOrEqual(BURST + Math.floor((tookMs / 1000) * PER_SECOND))
      const denied = shared.filter(({ status }) => status === 429)
      expect(denied.length).toBe(shared.length - admitted)
      for (const response of denied) {
        expect(jsonOf(response)).toMatchObject({ status: 429, rule: 'creates-per-client' })
        expect(problemOf(response)).toBe('rate-limited')
        expect([remainingOf(response), headersOf(response, 'Retry-After')]).toEqual([0, ['1']])
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
      const request = requestFrom(newAddress(), createOne)
      let response = await httpClient.send(request)
      for (let i = 0; i < 100 && response.status === 201; i++)
        response = await httpClient.send(request)
      expect(response.status).toBe(429)
      const retryMs = performance.now() + Number(headerOf(response, 'Retry-After')) * 1000
      await waitFor('the time in Retry-After', () => performance.now() >= retryMs)
      expect((await httpClient.send(request)).status).toBe(201)
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** The responses to a burst of a new client, and its duration. */
async function burstOf(
  httpClient: HttpClient,
): Promise<{ responses: RawResponse[]; tookMs: number }> {
  const request = requestFrom(newAddress(), createOne)
  const responses: RawResponse[] = []
  const startedMs = performance.now()
  await inParallel(PARALLEL, new Array<RawRequest>(REQUESTS).fill(request), async (each) => {
    responses.push(await httpClient.send(each))
  })
  return { responses, tookMs: performance.now() - startedMs }
}

/** How a client is identified. */
function testClients(stackNow: () => Stack, apiKey: string): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'an API key of the rules has its own limit, any other key has no effect',
    async () => {
      const httpClient = opened()
      const limitsOf = async (key: string) => {
        const request = createLinkRequest(
          { long_url: 'https://example.com/k' },
          { 'X-API-Key': key },
        )
        const sendOnce = async () => [await httpClient.send(requestFrom(newAddress(), request))]
        const responses = await untilShared(stackNow(), sendOnce, allShared)
        return responses.map((response) => headerOf(response, 'X-RateLimit-Limit'))
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
      // Two addresses of one bucket, and one of the adjacent bucket.
      const addressLists: readonly ((at: string) => readonly string[])[] = [
        (at) => [`2001:db8:${at}::1`, `2001:db8:${at}:0:ffff::2`, `2001:db8:${at}:1::1`],
        (at) => [
          `192.0.2.1, 10.200.0.${at}`,
          `192.0.2.2, 10.200.0.${at}`,
          `192.0.2.1, 10.201.0.${at}`,
        ],
      ]
      for (const addressesAt of addressLists) {
        let at = 0
        const sendEach = async () => {
          const responses: RawResponse[] = []
          const startedMs = performance.now()
          for (const address of addressesAt(String(++at))) {
            responses.push(await httpClient.send(requestFrom(address, createOne)))
          }
          return { responses, tookMs: performance.now() - startedMs }
        }
        const { responses } = await untilShared(stackNow(), sendEach, (result) => {
          return allShared(result.responses) && result.tookMs < REFILL_MS_MAX
        })
        expect(responses.map(remainingOf)).toEqual([19, 18, 19])
      }
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** Clients that guess codes. */
function testGuessers(stackNow: () => Stack): void {
  const opened = () => openHttpClient(stackNow().port)

  test(
    'a client that guesses codes is denied every code, existing ones too, and later admitted',
    async () => {
      const httpClient = opened()
      const code = codeOf(await httpClient.send(requestFrom(newAddress(), createOne)))
      let guessers = 0
      const currentGuesser = () => `2001:db8:abcd:${String(guessers)}::1`
      const redirect = (path: string, from = currentGuesser()) =>
        httpClient.send(requestFrom(from, { path }))
      const guess = async () => {
        guessers++
        let unknown = 0
        let response = await redirect('/guess0')
        while (response.status === 404 && unknown < 10 * UNKNOWN_MAX) {
          response = await redirect(`/guess${String(++unknown)}`)
        }
        return { unknown, denied: [response, await redirect(`/${code}`)] }
      }
      // A client just above the limit may be admitted as time passes, or if a limiter is slow.
      const { unknown, denied } = await untilShared(stackNow(), guess, (result) => {
        return result.denied.every(({ status }) => status === 429)
      })
      expect(denied.map(({ status }) => status)).toEqual([429, 429])
      for (const response of denied)
        expect(jsonOf(response)['rule']).toBe('unknown-codes-per-ipv6-client')
      expect(unknown).toBeGreaterThanOrEqual(UNKNOWN_MAX)
      process.stdout.write(`a guessing client got 429 after ${String(unknown)} unknown codes\n`)
      expect((await redirect(`/${code}`, newAddress())).status).toBe(302)
      const startedMs = performance.now()
      const isAdmitted = async () => (await redirect(`/${code}`)).status === 302
      await waitFor('the guessing client to be admitted', isAdmitted, ADMITTED_MS_MAX)
      process.stdout.write(
        `admitted after ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`,
      )
      httpClient.close()
    },
    TEST_MS_MAX,
  )
}

/** The number of decisions without Redis, because it timed out. */
async function decidedAlone({ limiters }: Stack): Promise<number> {
  const counts = await Promise.all(
    limiters.map((limiter) => decisionsOf(limiter, 'source="fallback"')),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The number of a limiter's decisions: those with this label, or all. */
async function decisionsOf(limiter: LimiterPod, label = ''): Promise<number> {
  const url = `http://127.0.0.1:${String(limiter.now().ready['adminPort'])}/metrics`
  const lines = (
    await (await fetch(url, { signal: AbortSignal.timeout(SCRAPE_MS_MAX) })).text()
  ).match(/^curtail_limiter_decisions_total.*$/gm)
  return (lines ?? [])
    .filter((line) => line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
