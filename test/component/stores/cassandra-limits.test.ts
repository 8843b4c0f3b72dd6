// Limits of a real Cassandra node: an expiry after 2038, which some configurations reject, and
// pages that take as long as the node's own timeout allows.
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { PAGE_MS_MAX } from '../../../src/clients/read-pages.ts'
import { RejectedWriteError } from '../../../src/resilience/store-error.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { createCassandraLinkStore } from '../../../src/stores/cassandra/link-store.ts'
import { openCassandra } from '../../../src/stores/cassandra/client.ts'
import { profilesOf, kindOptions } from '../../../src/stores/cassandra/statement-kinds.ts'
import { createBatchImporter } from '../../../src/transfer/import-batch.ts'
import {
  type OpenedCassandra,
  openNode,
  quiet,
  SETUP_MS_MAX,
} from '../../contract/open-cassandra.ts'
import { sampleLink } from '../../contract/sample-link.ts'

jest.setTimeout(SETUP_MS_MAX)

/** Much longer than the deadlines of other statements. */
const DELAY_MS = 6000
/** Cassandra's default of range_request_timeout. */
const RANGE_MS_MAX = 10_000

let node: OpenedCassandra

beforeAll(async () => {
  const compatible = {
    ...{ storage_compatibility_mode: 'CASSANDRA_4', sstable: { selected_format: 'big' } },
  }
  node = await openNode('limits', { proxied: true, settings: compatible })
})

afterAll(() => node.close())

const links = () => createCassandraLinkStore(node.cassandra)

test('a link whose row would outlive 2038 is rejected, and one before is stored', async () => {
  const [after, before] = ['2037-12-20', '2037-12-18'].map((date) =>
    sampleLink({ expiresAtMs: Date.parse(date) }),
  )
  const rejected: unknown = await links()
    .insertIfAbsent(after ?? sampleLink())
    .catch((error: unknown) => error)
  expect(rejected).toBeInstanceOf(RejectedWriteError)
  expect(rejected).toMatchObject({
    outcome: 'not-done',
    reason: expect.stringMatching(/2037-12-19/),
  })
  expect(await links().insertIfAbsent(before ?? sampleLink())).toBe(before?.writerId)
})

test('an import reports such a row as invalid at once, and imports the others', async () => {
  const importBatch = createBatchImporter({
    ...{ links: links(), ownHosts: new Set<string>(), nowMs: Date.now },
    ...{ monotonicMs: () => performance.now(), invalidateCaches: () => undefined },
  })
  const rowOf = (short_code: string, expires_at: string | null) => {
    return { short_code, long_url: 'https://example.com/', expires_at }
  }
  const results = await importBatch([rowOf('far', '2040-01-01T00:00:00Z'), rowOf('near', null)])
  expect(results).toEqual([
    {
      short_code: 'far',
      result: 'invalid',
      code: null,
      detail: expect.stringMatching(/2037-12-19/),
    },
    { short_code: 'near', result: 'created', code: 'near', detail: null },
  ])
})

test('a page that takes 6 s is returned', async () => {
  await links().insertIfAbsent(sampleLink({ code: 'page' }))
  const cassandra = openCassandra({ config: node.config, metrics: createMetrics(), log: quiet })
  await cassandra.ready
  const scanned = createCassandraLinkStore(cassandra)
  await scanned.scan({ after: undefined, max: 10 }) // prepares the statement
  node.cluster.proxy(0).delay(DELAY_MS)
  try {
    const startedMs = performance.now()
    const page = await scanned.scan({ after: undefined, max: 10 })
    expect(performance.now() - startedMs).toBeGreaterThan(DELAY_MS - 1000)
    expect(page.map(({ code }) => code)).toContain('page')
  } finally {
    await node.cluster.proxy(0).heal()
    await cassandra.close()
  }
})

test('each timeout of a page is longer than that of the component that it calls', () => {
  const profile = profilesOf({ isGlobal: false }).find(({ name }) => name === 'page-read')
  const attemptMs = profile?.readTimeout ?? 0
  const timeouts = [RANGE_MS_MAX, attemptMs, kindOptions['page-read'].deadlineMs, PAGE_MS_MAX]
  expect(timeouts).toEqual([...new Set(timeouts)].sort((one, other) => one - other))
})
