// The connections to the API server: the maximum number of lists and watches never delays the
// renewal of the Lease or another call.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { KubeApi } from '../../../src/kube/api.ts'
import { createElection } from '../../../src/kube/lease.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { systemScheduler } from '../../../src/kube/scheduler.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { type FakeKubeApi, startFakeKubeApi } from '../../kit/kube/fake-kube-api.ts'
import { callFake, quietLog, WIDGETS } from '../../kit/kube/kube-watcher.ts'
import { waitFor } from '../../kit/wait-for.ts'

/** The settings allow 2 × 32 caches for CodePools, and 2 × 100 for RateLimitPolicies. */
const CACHES = 264
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases'
const RENEW_DEADLINE_MS = 10_000

let fake: FakeKubeApi
let client: ReturnType<typeof callFake>
const stopping = new AbortController()
const running: Promise<unknown>[] = []
const released = Promise.withResolvers<undefined>()

beforeEach(async () => {
  fake = await startFakeKubeApi()
  client = callFake(fake)
})
afterEach(async () => {
  stopping.abort()
  released.resolve(undefined)
  await Promise.all(running)
  client.close()
  await fake.stop()
})

const startReflector = (api: KubeApi, namespace: string) => {
  const reflector = createReflector({
    api,
    resource: WIDGETS,
    namespace,
    cache: {
      replace: () => undefined,
      put: () => undefined,
      remove: () => undefined,
      size: () => 0,
    },
    trim: (object) => object,
    scheduler: systemScheduler,
    random: Math.random,
    metrics: createMetrics(),
    log: quietLog,
  })
  running.push(reflector.run(stopping.signal))
}
const renewalOf = () =>
  (fake.store.get(LEASES, 'lease')?.['spec'] as { renewTime?: string }).renewTime

test('the Lease is acquired while all caches list, and renewed while all watch', async () => {
  fake.holdLists = released.promise
  for (let at = 0; at < CACHES; at++) startReflector(client.api, `n${at}`)
  await waitFor('the lists', () => fake.listsHeld === CACHES)
  const election = createElection({
    ...{ api: client.api, namespace: 'n', name: 'lease', identity: 'one' },
    ...{ scheduler: systemScheduler, random: Math.random, wallMs: Date.now },
    ...{ metrics: createMetrics(), log: quietLog },
    times: { leaseDurationMs: 15_000, renewDeadlineMs: RENEW_DEADLINE_MS, retryPeriodMs: 100 },
  })
  expect(await election.acquire(stopping.signal)).toBe(true)
  running.push(election.renew(stopping.signal))

  fake.holdLists = undefined
  released.resolve(undefined)
  await waitFor('the watches', () => fake.watches.size === CACHES)
  const before = renewalOf()
  await waitFor('a renewal', () => renewalOf() !== before, RENEW_DEADLINE_MS)
  expect(election.isLeading()).toBe(true)
})
