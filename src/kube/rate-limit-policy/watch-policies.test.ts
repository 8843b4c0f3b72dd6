// The watched policies: which fields are kept, which are returned, and which changes affect rules.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import type { Change } from '../object-cache.ts'
import { untilAborted } from '../scheduler.ts'
import type { RateLimitPolicy } from './rate-limit-policy.ts'
import { affectsRules, policyOf, watchPolicies } from './watch-policies.ts'

const quiet = () => undefined
const creationTimestamp = '2026-01-01T00:00:00Z'
const spec: RateLimitPolicy['spec'] = {
  ...{ match: [{ key: 'k' }], mode: 'Enforce', onStoreError: 'Local' },
  limits: [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }],
}
const policy = (name: string, metadata: object = {}, more: object = {}): RateLimitPolicy => ({
  metadata: { ...{ name, namespace: 'n', uid: name, resourceVersion: '1' }, ...metadata },
  spec,
  ...more,
})

/** Watches the policies of the namespace `n` at a server that has these. */
async function start(...policies: readonly object[]) {
  const scheduler = createFakeScheduler()
  const limits: (string | undefined)[] = []
  const changes: Change<RateLimitPolicy>[] = []
  let keyChanges = 0
  const api: KubeApi = {
    call({ path, query }) {
      limits.push(query?.['limit'])
      const items = path.endsWith('/ratelimitpolicies') ? policies : [policy('secret')]
      return Promise.resolve({ items, metadata: { resourceVersion: '1' } })
    },
    async *lines({ signal }) {
      yield* []
      await untilAborted(signal)
    },
  }
  const log = { debug: quiet, info: quiet, warn: quiet }
  const watch = watchPolicies(
    {
      ...{ api, scheduler, random: () => 0, metrics: createMetrics(), log, onState: quiet },
      grants: [{ domain: 'd', namespaces: ['n'], apiKeys: true }],
    },
    (change) => changes.push(change),
    () => keyChanges++,
  )
  const stopping = new AbortController()
  const running = watch.run(stopping.signal)
  await scheduler.advance(0)
  const stop = async () => {
    stopping.abort()
    await running
  }
  return { watch, scheduler, changes, limits, keyChanges: () => keyChanges, stop }
}

test('keeps only the fields that are read', async () => {
  const times = { creationTimestamp, deletionTimestamp: creationTimestamp, generation: 2 }
  const status = { observedGeneration: 2 }
  const noise = { annotations: { a: 'b' }, labels: { c: 'd' }, managedFields: [] }
  const { changes, limits, keyChanges, stop } = await start(
    policy('p', { ...times, ...noise }, { status, kind: 'RateLimitPolicy' }),
    policy('q', noise),
  )
  expect(changes.map(({ object }) => object)).toEqual([policy('p', times, { status }), policy('q')])
  expect([keyChanges(), limits.toSorted()]).toEqual([1, ['20', '4']])
  await stop()
})

test('returns no policy that is being deleted, and none of an unknown namespace', async () => {
  const deleting = policy('q', { deletionTimestamp: creationTimestamp })
  const { watch, stop } = await start(policy('p'), deleting)
  expect(watch.list()).toEqual([policy('p')])
  expect(['n/p', 'n/q', 'n/r', 'm/p'].map(watch.get)).toEqual([
    policy('p'),
    ...[undefined, undefined, undefined],
  ])
  expect(watch.secretsOf('n').map(({ name }) => name)).toEqual(['secret'])
  await stop()
})

test('a written policy replaces only the version that it was built from', async () => {
  const { watch, changes, stop } = await start(policy('p'))
  const status = { observedGeneration: 1 }
  const written = policy('p', { resourceVersion: '3', annotations: { a: 'b' } }, { status })
  watch.replace(policy('p', { resourceVersion: '0' }), written)
  watch.replace(policy('other'), policy('other', { resourceVersion: '2' }))
  watch.replace(policy('p', { namespace: 'm' }), written)
  expect([watch.list(), changes.length]).toEqual([[policy('p')], 1])
  watch.replace(policy('p'), written)
  expect(watch.list()).toEqual([policy('p', { resourceVersion: '3' }, { status })])
  await stop()
})

test('is stuck once a watch hangs', async () => {
  const { watch, scheduler, stop } = await start()
  expect(watch.isStuck()).toBe(false)
  await scheduler.advance(300_001)
  expect(watch.isStuck()).toBe(true)
  await stop()
})

const before = policy('p', { generation: 1 })

const changed = (metadata: object): Change<RateLimitPolicy> => ({
  ...{ type: 'changed', object: policy('p', metadata), before },
})

test.each<readonly [string, Change<RateLimitPolicy>, boolean]>([
  ['an added policy', { type: 'added', object: before }, true],
  ['a deleted policy', { type: 'deleted', object: before }, true],
  ['a change from an unknown state', { type: 'changed', object: before }, true],
  ['a new version', changed({ generation: 1, resourceVersion: '2' }), false],
  ['a new generation', changed({ generation: 2 }), true],
  ['the start of a deletion', changed({ generation: 1, deletionTimestamp: 'x' }), true],
])('%s is compared with the state before', (_name, change, expected) => {
  expect(affectsRules(change)).toBe(expected)
})

test('the compiler gets the policy with its Secrets and its last accepted spec', () => {
  const given = policy('p', { generation: 3, creationTimestamp })
  const expected = {
    ...{ namespace: 'n', name: 'p', uid: 'p', generation: 3, spec, secrets: [] },
    createdMs: Date.parse(creationTimestamp),
  }
  expect(policyOf(given, [], undefined)).toEqual(expected)
  expect(policyOf(given, [], undefined)).not.toHaveProperty('accepted')
  const accepted = { generation: 2, spec }
  expect(policyOf(given, [], accepted)).toEqual({ ...expected, accepted })
  expect(policyOf(policy('p', { creationTimestamp }), [], undefined).generation).toBe(0)
})

test('a policy without a creation time is a defect', () => {
  expect(() => policyOf(policy('p'), [], undefined)).toThrow('n/p has no creationTimestamp')
})
