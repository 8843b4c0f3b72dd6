// The catalogue of metrics against the whole service: every documented metric has a value after all
// counted events occurred. Metrics of standalone are read from a standalone process; the metrics of
// the controller are verified in test/component/controller/kube-metrics.test.ts, those of the xDS
// client in test/component/ratelimit/xds-faults.test.ts.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createLinkRequest } from '../kit/http/client.ts'
import { createTestClient } from '../kit/ratelimit/grpc-client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { type Standalone, startStandalone } from '../kit/processes/standalone.ts'
import { waitFor } from '../kit/wait-for.ts'
import { isOfController, observedNames } from '../kit/metric-names.ts'
import { clientOf } from '../dependencies/redis.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import { underLoad } from './load.ts'
import { createLinks, startRedirects, restoreStack } from './stack-state.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 180_000
const WAIT_MS_MAX = 60_000
const RESPONSES = 100
const createOne = createLinkRequest({ long_url: 'https://example.com/counted' })

/** A limit that the second create of a client exceeds. */
const narrow = `domain: curtail
descriptors:
  - key: route
    value: create
    descriptors:
      - key: client
        rate_limit: { algorithm: token_bucket, unit: day, requests_per_unit: 1, burst: 1 }
`

/** The `catalogue` suite. */
export function testCatalogue(stackNow: () => Stack): void {
  test(
    'every metric except those of the controller and of the xDS client has a value',
    async () => {
      const stack = stackNow()
      const standalone = await startLimited(stack.folder)
      try {
        await causeEvents(stack)
        const urls = [...adminUrlsOf(stack), standalone.adminUrl]
        let missing = await catalogueNames()
        const areObserved = async () => {
          for (const url of urls) {
            const observed = observedNames(await (await fetch(`${url}/metrics`)).text())
            missing = missing.filter((name) => !observed.has(name))
          }
          return missing.length === 0
        }
        await waitFor('every metric', areObserved, WAIT_MS_MAX).catch(() => undefined)
        expect(missing).toEqual([])
      } finally {
        await standalone.stop()
      }
    },
    TEST_MS_MAX,
  )
}

async function catalogueNames(): Promise<string[]> {
  const all = await createMetrics().registry.getMetricsAsJSON()
  const names = all.map(({ name }) => name)
  return names.filter((name) => !isOfController(name) && !name.startsWith('curtail_xds_'))
}

function adminUrlsOf({ creates, redirects, limiters }: Stack): string[] {
  const pods = [...creates, ...redirects, ...limiters]
  return pods.map((pod) => `http://127.0.0.1:${String(pod.now().ready['adminPort'])}`)
}

/** A standalone process that created a link, denied another create, and cannot refill its pool. */
async function startLimited(folder: string): Promise<Standalone> {
  const rules = join(folder, 'narrow.yaml')
  await writeFile(rules, narrow)
  const standalone = await startStandalone({ env: { RATE_LIMITS: rules } })
  const httpClient = openHttpClient(standalone.port)
  const statuses = [
    (await httpClient.send(createOne)).status,
    (await httpClient.send(createOne)).status,
  ]
  httpClient.close()
  expect(statuses).toEqual([201, 429])
  const db = new DatabaseSync(join(standalone.dataDir, 'curtail.db'), { timeout: 5000 })
  // A pool of another secret cannot be refilled: a background task fails permanently.
  db.exec("UPDATE code_pools SET claimed = minted, secret_fingerprint = 'another'")
  db.close()
  return standalone
}

/** Causes every event that pods count, successes and failures. */
async function causeEvents(stack: Stack): Promise<void> {
  const codes = await createLinks(stack, 5)
  const [limiter] = stack.limiters
  const client = createTestClient(`127.0.0.1:${String(limiter?.port)}`)
  await client.call({ domain: 'nowhere', descriptors: [{ entries: [{ key: 'a', value: 'b' }] }] })
  client.close()
  await reportAbuse(stack, codes)
  await corruptEntry(stack)
  await underLoad(
    startRedirects(codes, () => stack.port),
    async () => {
      for (const component of [stack.counters, stack.cache, stack.cassandraNodes[0]]) {
        await component?.kill()
        await createMany(stack)
        await component?.restart()
        await restoreStack(stack)
      }
    },
  )
}

async function reportAbuse(stack: Stack, [code = '']: readonly string[]): Promise<void> {
  const httpClient = openHttpClient(stack.port)
  const report = {
    method: 'POST',
    path: '/abuse',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ link: code, reason: 'spam' }).toString(),
  }
  expect((await httpClient.send(requestFrom(newAddress(), report))).status).toBe(201)
  httpClient.close()
}

/** A redirect pod reads a cache entry that is not in the format of the pods. */
async function corruptEntry(stack: Stack): Promise<void> {
  const cache = clientOf(stack.cache.port)
  await cache.set('curtail:link:1:corrupt', 'no entry')
  cache.disconnect()
  const httpClient = openHttpClient(stack.port)
  expect((await httpClient.send(requestFrom(newAddress(), { path: '/corrupt' }))).status).toBe(404)
  httpClient.close()
}

/** Sends creates to all pods; some fail. */
async function createMany(stack: Stack): Promise<void> {
  const httpClient = openHttpClient(stack.port)
  for (let i = 0; i < RESPONSES; i++) await httpClient.send(requestFrom(newAddress(), createOne))
  httpClient.close()
}
