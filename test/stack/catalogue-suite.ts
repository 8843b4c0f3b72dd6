// The catalogue of metrics against the whole service: every documented metric has a value after all
// counted events have happened. Metrics of standalone are read from a standalone process; the
// controller's metrics are verified in test/component/controller/kube-metrics.test.ts.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from '@jest/globals'
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
import { makeLinks, startRedirects, untilWhole } from './stack-state.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 180_000
const WAIT_MS_MAX = 60_000
const ANSWERS = 100
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

/** Tests of it. */
export function describeCatalogue(stackNow: () => Stack): void {
  describe('the catalogue of metrics', () => {
    test(
      'every metric except the controller’s has a value',
      async () => {
        const stack = stackNow()
        await untilWhole(stack)
        const standalone = await startLimited(stack.folder)
        try {
          await provoke(stack)
          const urls = [...adminUrlsOf(stack), standalone.adminUrl]
          let missing = await catalogued()
          const isSeen = async () => {
            for (const url of urls) {
              const seen = observedNames(await (await fetch(`${url}/metrics`)).text())
              missing = missing.filter((name) => !seen.has(name))
            }
            return missing.length === 0
          }
          await waitFor('every metric', isSeen, WAIT_MS_MAX).catch(() => undefined) // told below
          expect(missing).toEqual([])
        } finally {
          await standalone.stop()
        }
      },
      TEST_MS_MAX,
    )
  })
}

async function catalogued(): Promise<string[]> {
  const all = await createMetrics().registry.getMetricsAsJSON()
  return all.map(({ name }) => name).filter((name) => !isOfController(name))
}

function adminUrlsOf({ creates, redirects, limiters }: Stack): string[] {
  const pods = [...creates, ...redirects, ...limiters]
  return pods.map((pod) => `http://127.0.0.1:${String(pod.now().ready['adminPort'])}`)
}

/** A standalone process that created a link, denied another, and cannot refill its pool. */
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
  // A pool of another secret is not refilled: a task in the background fails for good.
  db.exec("UPDATE code_pools SET claimed = minted, secret_fingerprint = 'another'")
  db.close()
  return standalone
}

/** Has everything happen once that pods count: what goes well, and what fails. */
async function provoke(stack: Stack): Promise<void> {
  const codes = await makeLinks(stack, 5)
  const [limiter] = stack.limiters
  const client = createTestClient(`127.0.0.1:${String(limiter?.port)}`)
  await client.call({ domain: 'nowhere', descriptors: [{ entries: [{ key: 'a', value: 'b' }] }] })
  client.close()
  await spoilEntry(stack)
  await underLoad(
    startRedirects(codes, () => stack.port),
    async () => {
      for (const part of [stack.counters, stack.cache, stack.cassandraNodes[0]]) {
        await part?.kill()
        await createMany(stack)
        await part?.restart()
        await untilWhole(stack)
      }
    },
  )
}

/** A redirect pod finds an entry in the cache that no pod has written. */
async function spoilEntry(stack: Stack): Promise<void> {
  const cache = clientOf(stack.cache.port)
  await cache.set('curtail:link:1:spoilt', 'no entry')
  cache.disconnect()
  const httpClient = openHttpClient(stack.port)
  expect((await httpClient.send(requestFrom(newAddress(), { path: '/spoilt' }))).status).toBe(404)
  httpClient.close()
}

/** Creates on all pods, whatever becomes of it. */
async function createMany(stack: Stack): Promise<void> {
  const httpClient = openHttpClient(stack.port)
  for (let i = 0; i < ANSWERS; i++) await httpClient.send(requestFrom(newAddress(), createOne))
  httpClient.close()
}
