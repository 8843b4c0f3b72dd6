// Pods, the cache, a Cassandra node and Envoy itself fail or are replaced under load: no client
// gets an error, or a retried create returns the same link.
import { beforeAll, expect, test } from '@jest/globals'
import { type HttpClient, openHttpClient } from '../kit/http/http-client.ts'
import { createWithRetries, inParallel } from '../kit/http/machine-clients.ts'
import { type RawResponse, headerOf } from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Load } from './load.ts'
import { createLinks, startRedirects, injectFault, restoreStack } from './stack-state.ts'
import type { Component } from './component.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
const RESPONSES = 300
/** Creates during a fault, and how many are in flight concurrently. */
const CREATES = 120
const FLIGHT = 6
const RETRIES_MAX = 50

/** The stack, and a load of redirects, by default on its edge. */
interface StackUnderLoad {
  readonly stackNow: () => Stack
  readonly load: (port?: () => number) => Load
}

/** The `pod-faults` suite. */
export function testPodFaults(stackNow: () => Stack): void {
  let codes: readonly string[] = []

  beforeAll(async () => {
    codes = await createLinks(stackNow(), 20)
  }, TEST_MS_MAX)

  const load = (port = () => stackNow().port) => startRedirects(codes, port)

  testPods({ stackNow, load })
  testCache({ stackNow, load })
  testEdge({ stackNow, load })
  testCassandra({ stackNow, load })
}

/** Faults of pods. */
function testPods({ stackNow, load }: StackUnderLoad): void {
  test(
    'a redirect pod is killed: no client gets an error',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(stack, { fault: 'redirect pod killed', load: load() }, async (running) => {
        await firstOf(stack.redirects).kill()
        await running.waitForResponses(RESPONSES)
        await firstOf(stack.redirects).restart()
        return ''
      })
    },
    TEST_MS_MAX,
  )

  test(
    'a redirect pod stops gracefully: no client gets an error, and it exits with 0',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(
        stack,
        { fault: 'redirect pod stopped by SIGTERM', load: load() },
        async (running) => {
          const pod = firstOf(stack.redirects).now()
          await firstOf(stack.redirects).stop()
          expect(await pod.exited).toBe(0)
          await running.waitForResponses(RESPONSES)
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
      await restoreStack(stack)
      const { retries, replays } = await createDuringFault(stack, () =>
        firstOf(stack.creates).kill(),
      )
      process.stdout.write(
        `create pod killed: ${String(CREATES)} creates, ${String(retries)} retries after a ` +
          `503, ${String(replays)} of links that were stored\n`,
      )
      await firstOf(stack.creates).restart()
    },
    TEST_MS_MAX,
  )
}

/** Faults of the Redis of the cache. */
function testCache({ stackNow, load }: StackUnderLoad): void {
  test(
    'the cache is unavailable, then empty: links redirect and are created',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(
        stack,
        { fault: 'Redis of the cache killed', load: load() },
        async (running) => {
          await stack.cache.kill()
          await running.waitForResponses(RESPONSES)
          const created = await createLinks(stack, 5)
          await stack.cache.restart()
          await running.waitForResponses(RESPONSES)
          const httpClient = openHttpClient(stack.port)
          for (const code of created) {
            const response = await httpClient.send(requestFrom(newAddress(), { path: `/${code}` }))
            expect(response.status).toBe(302)
          }
          httpClient.close()
          return ''
        },
      )
    },
    TEST_MS_MAX,
  )
}

/** A replacement of Envoy. */
function testEdge({ stackNow, load }: StackUnderLoad): void {
  test(
    'an Envoy is drained while another replaces it: no request is lost',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      const other = await stack.startEdge()
      let { port } = stack
      await injectFault(
        stack,
        { fault: 'Envoy drained and replaced', load: load(() => port) },
        async (running) => {
          const draining = stack.edge.drain()
          await running.waitForResponses(RESPONSES / 10) // clients still connect to it
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

/** A fault of a Cassandra node. */
function testCassandra({ stackNow, load }: StackUnderLoad): void {
  test(
    'one of three Cassandra nodes is killed: links redirect and are created',
    async () => {
      const stack = stackNow()
      await restoreStack(stack)
      await injectFault(stack, { fault: 'Cassandra node killed', load: load() }, async () => {
        const { retries, replays } = await createDuringFault(stack, () =>
          firstOf(stack.cassandraNodes).kill(),
        )
        return `${String(CREATES)} creates, ${String(retries)} retries, ${String(replays)} replays`
      })
    },
    TEST_MS_MAX,
  )
}

function firstOf<P extends Component>(components: readonly P[]): P {
  const [first] = components
  if (first === undefined) throw new Error('the stack has no such component')
  return first
}

/** Creates links during a fault; each must redirect to its own target, and be created once. */
async function createDuringFault(stack: Stack, inject: () => Promise<void>) {
  const bare = openHttpClient(stack.port)
  // Each request has a new address, so that no limit applies.
  const httpClient = {
    ...bare,
    send: (...[request, msMax]: Parameters<typeof bare.send>) =>
      bare.send(requestFrom(newAddress(), request), msMax),
  }
  const requests = Array.from({ length: CREATES }, (_, i) => ({
    key: `${String(process.pid)}-${newAddress()}`,
    target: `https://example.com/fault/${String(i)}`,
  }))
  const sum = { created: 0, retries: 0, replays: 0 }
  const working = inParallel(FLIGHT, requests, async (request) => {
    const { code, retries, isReplay } = await createWithRetries([httpClient], request)
    sum.created++
    sum.retries += retries
    if (isReplay) sum.replays++
    const redirect = await redirectWithRetries(httpClient, code ?? '')
    expect([redirect.status, headerOf(redirect, 'Location')]).toEqual([302, request.target])
    const replay = await createWithRetries([httpClient], request)
    expect([replay.code, replay.isReplay]).toEqual([code, true])
  })
  try {
    await Promise.all([
      working,
      waitFor('creates', () => sum.created > CREATES / 4, TEST_MS_MAX).then(inject),
    ])
  } finally {
    bare.close()
  }
  return sum
}

/**
 * The response to a redirect of a new link. Retries after 503, which a pod that just started on a
 * busy machine may return, and after 504, which the edge returns if the machine stalls.
 */
async function redirectWithRetries(httpClient: HttpClient, code: string): Promise<RawResponse> {
  let response = await httpClient.send({ path: `/${code}` })
  for (let i = 0; i < RETRIES_MAX && [503, 504].includes(response.status); i++) {
    response = await httpClient.send({ path: `/${code}` })
  }
  return response
}
