// A new leader sends no version that is older than those of its predecessor, even if its watch lags
// or the predecessor reported nothing. The leader repeats no line of the log. The API server is
// a function; time is simulated.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { createEventRecorder } from '../events.ts'
import { KubeError } from '../kube-error.ts'
import { untilAborted } from '../scheduler.ts'
import { createPolicyController, type PolicyControllerDeps } from './policy-controller.ts'
import type { RateLimitPolicyStatus } from './rate-limit-policy.ts'

const quiet = () => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const SECRET = { namespace: 'n', name: 'versions' }
const policyOf = (generation: number, limit: object) => ({
  metadata: {
    ...{ name: 'p', namespace: 'n', uid: 'p', resourceVersion: String(generation) },
    ...{ generation, creationTimestamp: '2026-01-01T00:00:00Z' },
  },
  spec: {
    ...{ domain: 'd', match: [{ key: 'k' }], mode: 'Enforce', onStoreError: 'Local' },
    limits: [{ name: 'l', algorithm: 'FixedWindow', window: '1s', ...limit }],
  },
})
type StoredPolicy = ReturnType<typeof policyOf> & { readonly status?: object }
/** A limiter that applies a version. */
const limiterOf = (active: string) => ({ node: 'l', address: '', active, rejected: undefined })
type Secret = Readonly<Record<'metadata' | 'data', Readonly<Record<string, string>>>>

/** One policy, whose changes no watch delivers, one limiter, and controllers. */
function startWorld(given: Partial<PolicyControllerDeps> = {}) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const policies: StoredPolicy[] = [policyOf(1, { requests: 1 })]
  /** The statuses that were written; `undefined`: writes are lost. */
  const state: { written?: RateLimitPolicyStatus[] } = {}
  let secret: Secret = { metadata: { resourceVersion: '1' }, data: {} }
  const api: KubeApi = {
    call({ method, path, body }) {
      if (!path.includes('/secrets/')) {
        const { resourceVersion } = policies.at(-1)?.metadata ?? {}
        const list = { items: policies.slice(-1), metadata: { resourceVersion } }
        const lost = new KubeError('lost', { status: 0, reason: 'Unreachable' })
        if (method === 'GET') return Promise.resolve(list)
        const { status } = body as { status?: RateLimitPolicyStatus }
        if (state.written === undefined || status === undefined) return Promise.reject(lost)
        state.written.push(status)
        return Promise.resolve({ ...policies.at(-1), status })
      }
      if (method === 'PATCH') secret = body as Secret
      return Promise.resolve(secret)
    },
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
          ...{ port: 1, close: () => Promise.resolve() },
          replicas: () => [...versions].map(limiterOf),
          publish: ({ version }) => versions.add(version),
        }),
      ...{ isLeading: () => true, store: undefined, onState: quiet, onPort: quiet },
      ...given,
    })
  /** Starts a controller, which watches. */
  const start = async () => {
    const stopping = new AbortController()
    const controller = create()
    void controller.watch(stopping.signal)
    await scheduler.advance(1000)
    return { controller, stopping }
  }
  /** The versions that it sends as the leader. */
  const lead = async ({ controller, stopping }: Awaited<ReturnType<typeof start>>) => {
    versions.clear()
    void controller.lead(stopping.signal)
    for (let at = 0; at < 100 && versions.size === 0; at++) {
      await scheduler.advance(100)
      await new Promise((resolve) => setTimeout(resolve, 5)) // for compression
    }
    return [...versions]
  }
  const stop = async ({ stopping }: Awaited<ReturnType<typeof start>>) => {
    stopping.abort()
    await scheduler.advance(0)
  }
  return { scheduler, metrics, policies, state, start, lead, stop }
}

test('the first version of a new leader contains changes that its watch has not seen', async () => {
  const { policies, start, lead, stop } = startWorld()
  const follower = await start()
  policies.push(policyOf(2, { requests: 2 })) // the watch of the follower does not deliver it
  const other = await start()
  const expected = await lead(other)
  expect(expected).toHaveLength(1)
  expect(await lead(follower)).toEqual(expected)
  await Promise.all([stop(other), stop(follower)])
})

test('an accepted generation stays active even if no status contains it', async () => {
  const serialize: NonNullable<PolicyControllerDeps['store']>['serialize'] = ({ version }) =>
    Promise.resolve(Buffer.from(version))
  const { policies, start, lead, stop } = startWorld({ store: { secret: SECRET, serialize } })
  const first = await start()
  const expected = await lead(first)
  expect(expected).toHaveLength(1)
  await stop(first)
  policies.push(policyOf(2, { window: 'never' })) // cannot be accepted
  const second = await start()
  expect(await lead(second)).toEqual(expected)
  await stop(second)
})

test('a replica on standby compiles what it watches, which shows a defect early', async () => {
  const { policies, metrics, scheduler, start, stop } = startWorld()
  const { metadata } = policyOf(2, {})
  policies.push({ metadata, spec: {} as ReturnType<typeof policyOf>['spec'] })
  const standby = await start()
  await scheduler.advance(10_000)
  const { values } = await metrics.backgroundFailures.get()
  expect(values.map(({ labels }) => labels.task)).toEqual(['compile-policies'])
  await stop(standby)
})

test.each([
  ['no line', 'Programmed', 0],
  ['a line', 'Pending', 1],
])('a new leader logs %s for a policy that was %s at its start', async (_, reason, expected) => {
  const lines: string[] = []
  const info = (...[, message]: readonly unknown[]) => lines.push(String(message))
  const quietLog = { ...log, info }
  const { policies, state, scheduler, start, lead, stop } = startWorld({ log: quietLog })
  const shown = (shownReason: string) => {
    const { metadata, spec } = policyOf(1, { requests: 1 })
    const status = shownReason === 'Programmed' ? 'True' : 'False'
    const conditions = [{ type: 'Programmed', status, reason: shownReason, observedGeneration: 1 }]
    const resourceVersion = String(policies.length + 1)
    const accepted = { generation: 1, spec }
    return { metadata: { ...metadata, resourceVersion }, spec, status: { accepted, conditions } }
  }
  policies.push(shown(reason))
  const follower = await start()
  policies.push(shown('Pending')) // a limiter restarts
  state.written = []
  await lead(follower)
  await scheduler.advance(2000)
  const programmed = state.written.map(({ conditions }) => conditions?.[1]?.reason)
  expect(programmed).toEqual(['Programmed'])
  expect(lines.filter((line) => line === 'policy programmed')).toHaveLength(expected)
  await stop(follower)
})
