// Redirects, creates and changes by several pods that share a Redis, which is stopped, killed and
// flushed: every response stays correct. The store is in memory, with delays.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createLinkFinder, type LinkFinder } from '../../../src/resolve/find-link.ts'
import { decideRedirect } from '../../../src/links/decide-redirect.ts'
import type { LinkStore } from '../../../src/links/link-store.ts'
import { monotonicMs } from '../../../src/resilience/deadline.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import {
  CONFIRM_DELAY_MS,
  createCacheInvalidator,
  type CacheInvalidator,
} from '../../../src/admin/invalidate-link.ts'
import { createLinkOperations } from '../../../src/admin/set-link-state.ts'
import { createMemoryLinkStore } from '../../kit/stores/memory-link-store.ts'
import { COMMAND_MS_MAX } from '../../../src/stores/redis/link-cache-commands.ts'
import type { OpenLinkCache } from '../../../src/stores/redis/open-link-cache.ts'
import { freshCode, sampleLink } from '../../contract/sample-link.ts'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import {
  isAvailable,
  type OpenCacheOptions,
  openReadyCache,
  TOLERANT_MS_MAX,
} from '../../kit/links/link-cache-use.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutPauses } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
const ROUNDS = 60
const READERS = 20
/** The bound of the contract: a change takes effect on every pod within this time. */
const CHANGE_MS_MAX = 5000
const tolerant = { commandMsMax: TOLERANT_MS_MAX }

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

/** Yields to other tasks: a reply from memory takes no turn of the event loop. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Delays a reply of the store by some turns, so that other tasks interleave. */
async function slowly<T>(reply: Promise<T>): Promise<T> {
  const turns = Math.floor(Math.random() * 4)
  const value = Math.random() < 0.5 ? await reply : undefined
  for (let i = 0; i < turns; i++) await nextTurn()
  return value ?? reply
}

async function openCache(port: number, options?: OpenCacheOptions): Promise<OpenLinkCache> {
  const { cache } = await openReadyCache(`redis://127.0.0.1:${String(port)}`, options)
  closing.push(() => cache.close())
  return cache
}

/** A redirect pod: returns the status of each request. */
async function openRedirectPod(port = server.port, options?: OpenCacheOptions) {
  const finder: LinkFinder = createLinkFinder({
    links: { find: (code) => slowly(links.find(code)) },
    cache: await openCache(port, options),
    nowMs: Date.now,
    metrics: createMetrics(),
    isOnlyWriter: false,
  })
  return async (code: string): Promise<302 | 404> => {
    const target = await finder.find(code, Date.now())
    return decideRedirect(target, Date.now()) === undefined ? 404 : 302
  }
}

/** A create pod, with the admin operations. */
async function openCreatePod(port = server.port, options?: OpenCacheOptions) {
  const metrics = createMetrics()
  const cache = await openCache(port, options)
  const invalidator: CacheInvalidator = createCacheInvalidator({
    cache,
    monotonicMs,
    metrics,
    onError(error) {
      throw error
    },
  })
  closing.unshift(() => invalidator.stop())
  const operations = createLinkOperations({
    links,
    nowMs: Date.now,
    onChanged: (code) => invalidator.confirm(code),
  })
  return {
    cache,
    operations,
    async create(code: string) {
      await slowly(links.insertIfAbsent(sampleLink({ code })))
      await invalidator.invalidate(code)
    },
    queued: async () => (await metrics.linkCacheInvalidationsQueued.get()).values[0]?.value,
  }
}

test(
  `a fresh link redirects immediately on both pods while ${String(READERS)} readers race`,
  async () => {
    const { port } = server
    const pods = [await openRedirectPod(port, tolerant), await openRedirectPod(port, tolerant)]
    const createPod = await openCreatePod(port, tolerant)
    for (let round = 0; round < ROUNDS; round++) {
      const code = freshCode()
      let isCreated = false
      const racing = Array.from({ length: READERS }, async (_, i) => {
        while (!isCreated) {
          await pods[i % 2]?.(code)
          await nextTurn()
        }
      })
      await createPod.create(code)
      const statuses = await Promise.all(pods.map((pod) => pod(code)))
      isCreated = true
      await Promise.all(racing)
      expect([round, ...statuses]).toEqual([round, 302, 302])
    }
  },
  TEST_MS_MAX,
)

test(
  'redirects stay correct while Redis is stopped, killed and flushed',
  async () => {
    const pods = [await openRedirectPod(), await openRedirectPod()]
    const createPod = await openCreatePod()
    const codes = Array.from({ length: 200 }, freshCode)
    for (const code of codes) await createPod.create(code)
    let isDone = false
    const wrong: string[] = []
    const reading = pods.map(async (pod) => {
      while (!isDone) {
        for (const code of codes) {
          if ((await pod(code)) !== 302) wrong.push(code)
          if ((await pod(`${code}x`)) !== 404) wrong.push(`${code}x`)
          await nextTurn()
        }
      }
    })
    const client = clientOf(server.port)
    await client.flushall()
    client.disconnect()
    server.stop()
    await waitFor('the cache to be unavailable', async () => !(await isAvailable(createPod.cache)))
    const tookMs = await durationWithoutPauses(() =>
      Promise.all(pods.map((pod) => pod(freshCode()))),
    )
    expect(tookMs).toBeLessThan(5 * 2 * COMMAND_MS_MAX)
    server.resume()
    await waitFor('the cache', () => isAvailable(createPod.cache))
    await server.kill()
    await server.restart()
    await waitFor('the cache', () => isAvailable(createPod.cache))
    isDone = true
    await Promise.all(reading)
    expect(wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'a create does not wait for a stopped Redis, and invalidates the entry once Redis resumes',
  async () => {
    const pod = await openRedirectPod()
    const createPod = await openCreatePod()
    const code = freshCode()
    const client = clientOf(server.port)
    // A read whose command times out leaves no entry.
    await waitFor('the negative entry', async () => {
      expect(await pod(code)).toBe(404)
      return (await client.exists(`curtail:link:1:${code}`)) === 1
    })
    server.stop()
    const tookMs = await durationWithoutPauses(() => createPod.create(code))
    expect(tookMs).toBeLessThan(5 * COMMAND_MS_MAX)
    expect(await createPod.queued()).toBe(1)
    expect(await pod(code)).toBe(302) // without the cache
    server.resume()
    await waitFor('the invalidation of the cache', async () => (await createPod.queued()) === 0)
    await waitFor('the pod to use it', async () => (await (await openRedirectPod())(code)) === 302)
    client.disconnect()
  },
  TEST_MS_MAX,
)

test(
  'a disabled link stops redirecting on every pod within 5 s of the response',
  async () => {
    const { port } = server
    const pods = [await openRedirectPod(port, tolerant), await openRedirectPod(port, tolerant)]
    const createPod = await openCreatePod(port, tolerant)
    const code = freshCode()
    await createPod.create(code)
    for (const pod of pods) expect(await pod(code)).toBe(302)
    const startedMs = performance.now()
    expect(await createPod.operations.disable(code)).toMatchObject({ kind: 'link' })
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(CONFIRM_DELAY_MS - 1)
    const disabledMs = performance.now()
    for (const pod of pods) await waitFor('a 404', async () => (await pod(code)) === 404)
    expect(performance.now() - disabledMs).toBeLessThan(CHANGE_MS_MAX)
    expect(await createPod.operations.enable(code)).toMatchObject({ kind: 'link' })
    for (const pod of pods) expect(await pod(code)).toBe(302)
  },
  TEST_MS_MAX,
)

test(
  'a change that the cache cannot confirm is rejected, and its entry is invalidated later',
  async () => {
    const pod = await openRedirectPod() // reaches the cache, unlike the create pod
    const createPod = await openCreatePod(proxy.port)
    const code = freshCode()
    await createPod.create(code)
    expect(await pod(code)).toBe(302)
    proxy.blackHole()
    expect(await createPod.operations.disable(code)).toEqual({ kind: 'cache-unavailable' })
    expect(await createPod.queued()).toBe(1)
    await proxy.heal()
    await waitFor('the invalidation of the cache', async () => (await createPod.queued()) === 0)
    expect(await createPod.operations.disable(code)).toMatchObject({ kind: 'link' })
    const next = await openRedirectPod()
    expect(await next(code)).toBe(404)
  },
  TEST_MS_MAX,
)

test(
  'a pod that is partitioned from the cache alone reads the store',
  async () => {
    const connected = await openRedirectPod(server.port, tolerant)
    const partitioned = await openRedirectPod(proxy.port)
    const createPod = await openCreatePod(server.port, tolerant)
    await proxy.stopListening()
    const code = freshCode()
    expect(await Promise.all([connected(code), partitioned(code)])).toEqual([404, 404])
    await createPod.create(code)
    expect(await Promise.all([connected(code), partitioned(code)])).toEqual([302, 302])
    expect(await createPod.operations.disable(code)).toMatchObject({ kind: 'link' })
    const startedMs = performance.now()
    for (const pod of [connected, partitioned])
      await waitFor('a 404', async () => (await pod(code)) === 404)
    expect(performance.now() - startedMs).toBeLessThan(CHANGE_MS_MAX)
  },
  TEST_MS_MAX,
)
