// Pods, the cache, a Cassandra node and Envoy itself fail or are replaced under load: no client
// sees an error, or it retries and gets its link exactly once.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { type HttpClient, openHttpClient } from '../kit/http/http-client.ts'
import { createWithRetries, inParallel } from '../kit/http/machine-clients.ts'
import { type RawResponse, headerOf } from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Load } from './load.ts'
import { makeLinks, startRedirects, injectFault, untilWhole } from './stack-state.ts'
import type { Component } from './component.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
const ANSWERS = 300
/** Creates while a pod is killed, and so many at a time. */
const WISHES = 120
const FLIGHT = 6
const FOLLOWS_MAX = 50

/** The stack, and clients that follow links in it meanwhile, at `port`. */
interface Faulty {
  readonly stackNow: () => Stack
  readonly load: (port?: () => number) => Load
}

/** Tests of it; the last ones leave components stopped. */
export function describePodFaults(stackNow: () => Stack): void {
  let codes: readonly string[] = []

  beforeAll(async () => {
    codes = await makeLinks(stackNow(), 20)
  }, TEST_MS_MAX)

  const load = (port = () => stackNow().port) => startRedirects(codes, port)

  describe('pods that fail under load', () => {
    testPods({ stackNow, load })
    testCache({ stackNow, load })
    testEdge({ stackNow, load })
    testCassandra({ stackNow, load })
  })
}

/** Pods that serve links. */
function testPods({ stackNow, load }: Faulty): void {
  test(
    'a redirect pod is killed: no client sees an error',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(stack, { fault: 'redirect pod killed', load: load() }, async (running) => {
        await firstOf(stack.redirects).kill()
        await running.more(ANSWERS)
        await firstOf(stack.redirects).restart()
        return ''
      })
    },
    TEST_MS_MAX,
  )

  test(
    'a redirect pod stops gracefully: no client sees an error, and it exits with 0',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(
        stack,
        { fault: 'redirect pod ended by SIGTERM', load: load() },
        async (running) => {
          const pod = firstOf(stack.redirects).now()
          await firstOf(stack.redirects).stop()
          expect(await pod.exited).toBe(0)
          await running.more(ANSWERS)
          await firstOf(stack.redirects).restart()
          return ''
        },
      )
    },
    TEST_MS_MAX,
  )

  test(
    'a create pod is killed: a retry with the same key returns one link',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      const { repeats, replays } = await createThrough(stack, () => firstOf(stack.creates).kill())
      process.stdout.write(
        `create pod killed: ${String(WISHES)} creates, ${String(repeats)} repeated after a ` +
          `503, ${String(replays)} of them had been stored\n`,
      )
      await firstOf(stack.creates).restart()
    },
    TEST_MS_MAX,
  )
}

/** The Redis of the cache. */
function testCache({ stackNow, load }: Faulty): void {
  test(
    'the cache is unavailable, then empty: links redirect and are created',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(
        stack,
        { fault: 'Redis of the cache gone', load: load() },
        async (running) => {
          await stack.cache.kill()
          await running.more(ANSWERS)
          const made = await makeLinks(stack, 5)
          await stack.cache.restart()
          await running.more(ANSWERS)
          const httpClient = openHttpClient(stack.port)
          for (const code of made) {
            const answer = await httpClient.send(requestFrom(newAddress(), { path: `/${code}` }))
            expect(answer.status).toBe(302)
          }
          httpClient.close()
          return ''
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** Envoy itself. */
function testEdge({ stackNow, load }: Faulty): void {
  test(
    'an Envoy is drained while another takes over: no request is lost',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      const other = await stack.startEdge()
      let { port } = stack
      await injectFault(
        stack,
        { fault: 'Envoy drained and replaced', load: load(() => port) },
        async (running) => {
          const draining = stack.edge.drain()
          await running.more(ANSWERS / 10) // connections that come late, as nobody knows yet
          port = other.port
          const drained = await draining
          expect(drained).toMatchObject({ outcome: 'drained', served: { connections: 0 } })
          await stack.edge.envoy.stop()
          return `drained in ${String(drained['tookMs'])} ms`
        },
      )
      await stack.edge.envoy.restart()
      await stack.edge.sidecar.restart()
      await other.envoy.stop()
    },
    TEST_MS_MAX,
  )
}

/** A node of the store. */
function testCassandra({ stackNow, load }: Faulty): void {
  test(
    'one of three Cassandra nodes is killed: links redirect and are created',
    async () => {
      const stack = stackNow()
      await untilWhole(stack)
      await injectFault(stack, { fault: 'node of Cassandra killed', load: load() }, async () => {
        const { repeats, replays } = await createThrough(stack, () =>
          firstOf(stack.cassandraNodes).kill(),
        )
        return `${String(WISHES)} creates, ${String(repeats)} repeated, ${String(replays)} replays`
      })
    },
    TEST_MS_MAX,
  )
}

function firstOf<P extends Component>(parts: readonly P[]): P {
  const [first] = parts
  if (first === undefined) throw new Error('there is no such part')
  return first
}

/** Creates links during a fault; each must redirect to its own target, and be created once. */
async function createThrough(stack: Stack, happens: () => Promise<void>) {
  const bare = openHttpClient(stack.port)
  // Each asks from an address of its own: no limit is meant here.
  const httpClient = {
    ...bare,
    send: (...[ask, msMax]: Parameters<typeof bare.send>) =>
      bare.send(requestFrom(newAddress(), ask), msMax),
  }
  const requests = Array.from({ length: WISHES }, (_, i) => ({
    key: `${String(process.pid)}-${newAddress()}`,
    target: `https://example.com/wish/${String(i)}`,
  }))
  const sum = { told: 0, repeats: 0, replays: 0 }
  const working = inParallel(FLIGHT, requests, async (request) => {
    const { code, retries, isReplay } = await createWithRetries([httpClient], request)
    sum.told++
    sum.repeats += retries
    if (isReplay) sum.replays++
    const followed = await followUntilTold(httpClient, code ?? '')
    expect([followed.status, headerOf(followed, 'Location')]).toEqual([302, request.target])
    const again = await createWithRetries([httpClient], request)
    expect([again.code, again.isReplay]).toEqual([code, true])
  })
  try {
    await Promise.all([
      working,
      waitFor('creates', () => sum.told > WISHES / 4, TEST_MS_MAX).then(happens),
    ])
  } finally {
    bare.close()
  }
  return sum
}

/**
 * Follows a fresh link, never to 404. A pod that is new on a busy machine may say 503 first, and
 * the edge 504 to who asked before the machine stood still for as long as a redirect may take.
 */
async function followUntilTold(httpClient: HttpClient, code: string): Promise<RawResponse> {
  let answer = await httpClient.send({ path: `/${code}` })
  for (let i = 0; i < FOLLOWS_MAX && [503, 504].includes(answer.status); i++) {
    answer = await httpClient.send({ path: `/${code}` })
  }
  return answer
}
