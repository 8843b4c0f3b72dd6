// A new leader whose watch lags sends no version that is older than those of its predecessor. The
// API server is a function, and time is simulated.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { createEventRecorder } from '../events.ts'
import { untilAborted } from '../scheduler.ts'
import { createPolicyController } from './policy-controller.ts'

const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const policyOf = (requests: number) => ({
  metadata: {
    ...{ name: 'p', namespace: 'n', uid: 'p', resourceVersion: String(requests) },
    ...{ generation: requests, creationTimestamp: '2026-01-01T00:00:00Z' },
  },
  spec: {
    ...{ domain: 'd', match: [{ key: 'k' }], mode: 'Enforce', onStoreError: 'Local' },
    limits: [{ name: 'l', algorithm: 'FixedWindow', requests, window: '1s' }],
  },
})

test('the first version of a new leader contains changes that its watch has not seen', async () => {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  let requests = 1
  const api: KubeApi = {
    call: ({ method }) =>
      Promise.resolve(
        method === 'GET'
          ? { items: [policyOf(requests)], metadata: { resourceVersion: String(requests) } }
          : policyOf(requests),
      ),
    async *lines({ signal }) {
      yield* []
      await untilAborted(signal)
    },
  }
  const clocks = { nowMs: scheduler.nowMs, wallMs: () => 0 }
  const versions = new Set<string>()
  const create = () =>
    createPolicyController({
      ...{ api, scheduler, metrics, log, wallMs: clocks.wallMs, random: () => 0 },
      events: createEventRecorder({
        ...{ api, controller: 'c', instance: 'i', metrics, log, mayWrite: () => true },
        ...clocks,
      }),
      grants: [{ domain: 'd', namespaces: ['n'] }],
      openServer: () =>
        Promise.resolve({
          ...{ port: 1, replicas: () => [], close: () => Promise.resolve() },
          publish: ({ version }) => versions.add(version),
        }),
      ...{ isLeading: () => true, store: undefined, onState: quiet, onPort: quiet },
    })
  const stopping = new AbortController()
  const lead = async (controller: ReturnType<typeof create>) => {
    versions.clear()
    void controller.lead(stopping.signal)
    await scheduler.advance(5000)
    return [...versions]
  }
  const [follower, other] = [create(), create()]
  void follower.watch(stopping.signal)
  await scheduler.advance(1000)
  requests = 2 // the watch of the follower does not deliver it
  void other.watch(stopping.signal)
  const expected = await lead(other)
  expect(expected).toHaveLength(1)
  expect(await lead(follower)).toEqual(expected)
  stopping.abort()
  await scheduler.advance(0)
})
