// A sweep deletes only records that expired long ago, in small steps, and stops with the process.
import { expect, test } from '@jest/globals'
import { sampleLink } from '../../test/contract/sample-link.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import { sweep } from './sweep.ts'

const NOW_MS = 1_790_000_000_000
const DAY_MS = 86_400_000

function createSetup() {
  const links = createMemoryLinkStore()
  const metrics = createMetrics()
  const lines: unknown[] = []
  const swept: { beforeMs: number; max: number }[] = []
  const intents = {
    deleteExpired(given: { beforeMs: number; max: number }) {
      swept.push(given)
      return Promise.resolve(0)
    },
  }
  const stopping = new AbortController()
  const log = { info: (line: unknown) => lines.push(line) }
  const reports = intents
  const deps = {
    links,
    intents,
    reports,
    nowMs: () => NOW_MS,
    metrics,
    log,
    signal: stopping.signal,
  }
  return { ...deps, deps, stopping, swept, lines }
}

async function purged(metrics: ReturnType<typeof createMetrics>): Promise<number | undefined> {
  return (await metrics.linksPurged.get()).values[0]?.value
}

test('links are deleted 31 days after their expiry, not sooner', async () => {
  const { deps, links, metrics, swept } = createSetup()
  const expiring = (expiresAtMs: number | null) => sampleLink({ expiresAtMs })
  const old = expiring(NOW_MS - 31 * DAY_MS - 1)
  const kept = [
    expiring(NOW_MS - 31 * DAY_MS),
    expiring(NOW_MS - 1),
    expiring(NOW_MS + 1),
    expiring(null),
  ]
  for (const link of [old, ...kept]) await links.insertIfAbsent(link)
  await sweep(deps)
  expect(await links.find(old.code)).toBeUndefined()
  for (const link of kept) expect(await links.find(link.code)).toEqual(link)
  expect(await purged(metrics)).toBe(1)
  expect(swept.map(({ beforeMs }) => beforeMs)).toEqual([NOW_MS, NOW_MS]) // intents, reports
})

test('links that were deleted before a step failed are counted', async () => {
  const { deps, metrics } = createSetup()
  const counts = [500, undefined]
  const links = {
    deleteExpired() {
      const count = counts.shift()
      return count === undefined ? Promise.reject(new Error('full')) : Promise.resolve(count)
    },
  }
  await expect(sweep({ ...deps, links })).rejects.toThrow('full')
  expect(await purged(metrics)).toBe(500)
})

test('many records are deleted in steps', async () => {
  const { deps, links, metrics, lines } = createSetup()
  for (let i = 0; i < 1200; i++) {
    await links.insertIfAbsent(sampleLink({ code: `old${String(i)}`, expiresAtMs: 1 }))
  }
  const steps: number[] = []
  const watched = {
    deleteExpired(given: { beforeMs: number; max: number }) {
      steps.push(given.max)
      return links.deleteExpired(given)
    },
  }
  await sweep({ ...deps, links: watched })
  expect(steps).toEqual([500, 500, 500])
  expect(await purged(metrics)).toBe(1200)
  expect(lines).toEqual([{ links: 1200, intents: 0, reports: 0 }])
})

test('a stopped process sweeps no further, and an empty sweep is not logged', async () => {
  const { deps, links, stopping, lines } = createSetup()
  await sweep(deps)
  const link = sampleLink({ expiresAtMs: 1 })
  await links.insertIfAbsent(link)
  stopping.abort()
  await sweep(deps)
  expect(await links.find(link.code)).toEqual(link)
  expect(lines).toEqual([])
})

test.each([
  ['intents', { links: 0, intents: 1, reports: 0 }],
  ['reports', { links: 0, intents: 0, reports: 1 }],
  ['as many links as intents', { links: 1, intents: 1, reports: 0 }],
  ['as many reports as links', { links: 1, intents: 0, reports: 1 }],
  ['all records', { links: 1, intents: 2, reports: 3 }],
])('a sweep that deletes %s is logged', async (_, counts) => {
  const { deps, lines, metrics } = createSetup()
  const storeOf = (count: number) => ({ deleteExpired: () => Promise.resolve(count) })
  const { links, intents, reports } = counts
  const stores = { links: storeOf(links), intents: storeOf(intents), reports: storeOf(reports) }
  await sweep({ ...deps, ...stores })
  expect(lines).toEqual([counts])
  expect(await purged(metrics)).toBe(links)
})

test('a sweep that is stopped during a step starts no other', async () => {
  const { deps, stopping, swept, lines } = createSetup()
  let steps = 0
  const links = {
    deleteExpired() {
      steps++
      stopping.abort()
      return Promise.resolve(500)
    },
  }
  await sweep({ ...deps, links })
  expect([steps, swept]).toEqual([1, []])
  expect(lines).toEqual([{ links: 500, intents: 0, reports: 0 }])
})
