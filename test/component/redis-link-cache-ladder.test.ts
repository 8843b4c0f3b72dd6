// Redirects, creations and changes of several pods that share a real Redis, while it is stopped,
// killed and flushed: what is answered stays right. The store is in memory, and slow.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createLinkFinder, type LinkFinder } from '../../src/resolve/find-link.ts'
import { decideRedirect } from '../../src/links/decide-redirect.ts'
import type { LinkStore } from '../../src/links/link-store.ts'
import { monotonicMs } from '../../src/resilience/deadline.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import {
  CONFIRM_DELAY_MS,
  createCacheInvalidator,
  type CacheInvalidator,
} from '../../src/admin/invalidate-link.ts'
import { createLinkOperations } from '../../src/admin/set-link-state.ts'
import { createMemoryLinkStore } from '../../src/stores/memory/link-store.ts'
import { COMMAND_MS_MAX } from '../../src/stores/redis/link-cache-commands.ts'
import type { OpenLinkCache } from '../../src/stores/redis/open-link-cache.ts'
import { freshCode, sampleLink } from '../contract/sample-link.ts'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { clientOf, type RedisServer, startRedis } from '../parts/redis.ts'
import { answers, openReadyCache } from './link-cache-use.ts'
import { waitFor } from './wait-for.ts'

const TEST_MS_MAX = 60_000
const ROUNDS = 60
const READERS = 20
/** A change must be seen everywhere after so long. */
const GONE_MS_MAX = 5000

let server: RedisServer
let proxy: FaultProxy
let links: LinkStore
let closing: (() => Promise<void>)[]

beforeEach(async () => {
  server = await startRedis()
  proxy = await startFaultProxy({ to: { host: '127.0.0.1', port: server.port } })
  links = createMemoryLinkStore()
  closing = []
}, TEST_MS_MAX)
afterEach(async () => {
  for (const close of closing) await close()
  await proxy.close()
  await server.close()
})

/** Lets others go on: what is answered from memory takes no turn of the event loop. */
const aTurn = () => new Promise((resolve) => setImmediate(resolve))

/** A store answers only after some turns, so that others get in between. */
async function slowly<T>(answer: Promise<T>): Promise<T> {
  const turns = Math.floor(Math.random() * 4)
  const value = Math.random() < 0.5 ? await answer : undefined
  for (let i = 0; i < turns; i++) await aTurn()
  return value ?? answer
}

async function openCache(port: number): Promise<OpenLinkCache> {
  const { cache } = await openReadyCache(`redis://127.0.0.1:${String(port)}`)
  closing.push(() => cache.close())
  return cache
}

/** What a pod that redirects answers. */
async function openPod(port = server.port) {
  const finder: LinkFinder = createLinkFinder({
    links: { find: (code) => slowly(links.find(code)) },
    cache: await openCache(port),
    nowMs: Date.now,
    metrics: createMetrics(),
    missMs: 0,
  })
  return async (code: string): Promise<302 | 404> => {
    const target = await finder.find(code, Date.now())
    return decideRedirect(target, Date.now()) === undefined ? 404 : 302
  }
}

/** What a pod that creates can do. */
async function openCreator(port = server.port) {
  const metrics = createMetrics()
  const cache = await openCache(port)
  const forgetter: CacheInvalidator = createCacheInvalidator({
    cache,
    monotonicMs,
    metrics,
    onError(error) {
      throw error
    },
  })
  closing.unshift(() => forgetter.stop())
  const operations = createLinkOperations({
    links,
    nowMs: Date.now,
    onChanged: (code) => forgetter.confirm(code),
  })
  return {
    cache,
    operations,
    async create(code: string) {
      await slowly(links.insertIfAbsent(sampleLink({ code })))
      await forgetter.invalidate(code)
    },
    queued: async () => (await metrics.linkCacheInvalidationsQueued.get()).values[0]?.value,
  }
}

test(
  `a fresh link redirects at once on both pods, ${String(READERS)} readers racing its creator`,
  async () => {
    const pods = [await openPod(), await openPod()]
    const creator = await openCreator()
    for (let round = 0; round < ROUNDS; round++) {
      const code = freshCode()
      let isCreated = false
      const racing = Array.from({ length: READERS }, async (_, i) => {
        while (!isCreated) {
          await pods[i % 2]?.(code)
          await aTurn()
        }
      })
      await creator.create(code)
      const told = await Promise.all(pods.map((pod) => pod(code)))
      isCreated = true
      await Promise.all(racing)
      expect([round, ...told]).toEqual([round, 302, 302])
    }
  },
  TEST_MS_MAX,
)

test(
  'redirects stay right while Redis is stopped, killed and flushed',
  async () => {
    const pods = [await openPod(), await openPod()]
    const creator = await openCreator()
    const codes = Array.from({ length: 200 }, freshCode)
    for (const code of codes) await creator.create(code)
    let isOver = false
    const wrong: string[] = []
    const following = pods.map(async (pod) => {
      while (!isOver) {
        for (const code of codes) {
          if ((await pod(code)) !== 302) wrong.push(code)
          if ((await pod(`${code}x`)) !== 404) wrong.push(`${code}x`)
          await aTurn()
        }
      }
    })
    const client = clientOf(server.port)
    await client.flushall()
    client.disconnect()
    server.stop()
    await waitFor('the cache to be away', async () => !(await answers(creator.cache)))
    const begunMs = performance.now()
    await Promise.all(pods.map((pod) => pod(freshCode())))
    expect(performance.now() - begunMs).toBeLessThan(5 * 2 * COMMAND_MS_MAX)
    server.resume()
    await waitFor('the cache', () => answers(creator.cache))
    await server.kill()
    await server.restart()
    await waitFor('the cache', () => answers(creator.cache))
    isOver = true
    await Promise.all(following)
    expect(wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'stopped while a link is created: the 201 does not wait, and the cache is told when it goes on',
  async () => {
    const pod = await openPod()
    const creator = await openCreator()
    const code = freshCode()
    expect(await pod(code)).toBe(404)
    const client = clientOf(server.port)
    await waitFor('the negative', async () => (await client.exists(`curtail:link:1:${code}`)) === 1)
    server.stop()
    const begunMs = performance.now()
    await creator.create(code)
    expect(performance.now() - begunMs).toBeLessThan(5 * COMMAND_MS_MAX)
    expect(await creator.queued()).toBe(1)
    expect(await pod(code)).toBe(302) // without the cache
    server.resume()
    await waitFor('the cache to be told', async () => (await creator.queued()) === 0)
    await waitFor('the pod to use it', async () => (await (await openPod())(code)) === 302)
    client.disconnect()
  },
  TEST_MS_MAX,
)

test(
  'a disabled link is gone on every pod within 5 s of the answer, and not before both know of it',
  async () => {
    const pods = [await openPod(), await openPod()]
    const creator = await openCreator()
    const code = freshCode()
    await creator.create(code)
    for (const pod of pods) expect(await pod(code)).toBe(302)
    const begunMs = performance.now()
    expect(await creator.operations.disable(code)).toMatchObject({ kind: 'link' })
    expect(performance.now() - begunMs).toBeGreaterThanOrEqual(CONFIRM_DELAY_MS - 1)
    const disabledMs = performance.now()
    for (const pod of pods) await waitFor('its end', async () => (await pod(code)) === 404)
    expect(performance.now() - disabledMs).toBeLessThan(GONE_MS_MAX)
    expect(await creator.operations.enable(code)).toMatchObject({ kind: 'link' })
    for (const pod of pods) expect(await pod(code)).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'a change that the cache cannot confirm is not acknowledged, and told once it can',
  async () => {
    const pod = await openPod() // which reaches the cache, other than the operator
    const creator = await openCreator(proxy.port)
    const code = freshCode()
    await creator.create(code)
    expect(await pod(code)).toBe(302)
    proxy.blackHole()
    expect(await creator.operations.disable(code)).toEqual({ kind: 'store-unavailable' })
    expect(await creator.queued()).toBe(1)
    await proxy.heal()
    await waitFor('the cache to be told', async () => (await creator.queued()) === 0)
    expect(await creator.operations.disable(code)).toMatchObject({ kind: 'link' })
    const next = await openPod()
    expect(await next(code)).toBe(404)
  },
  TEST_MS_MAX,
)

test(
  'a pod cut off from the cache alone answers from the store',
  async () => {
    const [near, cut] = [await openPod(), await openPod(proxy.port)]
    const creator = await openCreator()
    await proxy.refuse()
    const code = freshCode()
    expect(await Promise.all([near(code), cut(code)])).toEqual([404, 404])
    await creator.create(code)
    expect(await Promise.all([near(code), cut(code)])).toEqual([302, 302])
    expect(await creator.operations.disable(code)).toMatchObject({ kind: 'link' })
    const begunMs = performance.now()
    for (const pod of [near, cut]) await waitFor('its end', async () => (await pod(code)) === 404)
    expect(performance.now() - begunMs).toBeLessThan(GONE_MS_MAX)
  },
  TEST_MS_MAX,
)
