// The leader of RateLimitPolicies while its port cannot be opened, and its stop while the API
// server and the limiters hang. The API server is a function, and time is simulated.
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { ruleIdsOf } from '../../policies/rule-ids.ts'
import type { KubeApi } from '../api.ts'
import { createEventRecorder } from '../events.ts'
import { untilAborted } from '../scheduler.ts'
import { AUDIT_WRITE_MS } from './audit-sums.ts'
import { LIMITER_RECONNECT_MS } from './limiter-count.ts'
import { createPolicyController } from './policy-controller.ts'
import type { RateLimitPolicyStatus } from './rate-limit-policy.ts'
import type { LimiterEvents, RulesServer } from './rules-port.ts'

const specOf = (name: string) => ({
  ...({ domain: 'd', match: [{ key: name }], mode: 'Audit', onStoreError: 'Local' } as const),
  limits: [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }],
})
const policyOf = (name: string) => ({
  metadata: {
    ...{ name, namespace: 'n', uid: name, resourceVersion: '1', generation: 1 },
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: specOf(name),
})
type Call = Parameters<KubeApi['call']>[0]
const quiet = () => undefined

/** Watches and leads with two policies; `write` is the response of the API server to a write. */
function start(write: (call: Call) => Promise<unknown>, server?: Partial<RulesServer>) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const warnings: string[] = []
  const warn = (fields: unknown, message = String(fields)) => warnings.push(message)
  const log = { debug: quiet, info: quiet, warn, error: quiet }
  const api: KubeApi = {
    call: (call) =>
      call.method === 'GET'
        ? Promise.resolve({ items: ['p', 'q'].map(policyOf), metadata: { resourceVersion: '1' } })
        : write(call),
    async *lines({ signal }) {
      yield* []
      await untilAborted(signal)
    },
  }
  const clocks = { nowMs: scheduler.nowMs, wallMs: () => 0 }
  const events = createEventRecorder({
    ...{ api, controller: 'c', instance: 'i', metrics, log, mayWrite: () => true },
    ...clocks,
  })
  const opened: LimiterEvents[] = []
  const controller = createPolicyController({
    ...{ api, events, scheduler, metrics, wallMs: clocks.wallMs, random: () => 0.5 },
    grants: [{ domain: 'd', namespaces: ['n'] }],
    openServer: (on) => {
      opened.push(on)
      return server === undefined
        ? Promise.reject(new Error('EADDRINUSE'))
        : Promise.resolve({
            ...{ port: 1, publish: quiet, replicas: () => [], close: () => Promise.resolve() },
            ...server,
          })
    },
    isLeading: () => true,
    store: undefined,
    log,
    onState: quiet,
    onPort: quiet,
  })
  const stopping = new AbortController()
  void controller.watch(stopping.signal)
  const led = controller.lead(stopping.signal)
  return { scheduler, stopping, led, opened, warnings }
}

test('while the port for limiters cannot be opened, the statuses report no limiters', async () => {
  const written: RateLimitPolicyStatus[] = []
  const { scheduler, stopping, led } = start((call) => {
    const { status } = call.body as { status?: RateLimitPolicyStatus }
    if (status !== undefined) written.push(status)
    return Promise.resolve({ ...policyOf('p'), status })
  })
  await scheduler.advance(2000)
  expect(written[0]?.conditions?.map(({ type, status, reason }) => [type, status, reason])).toEqual(
    [
      ['Accepted', 'True', 'Accepted'],
      ['Programmed', 'False', 'NoLimiters'],
      ['Reconciling', 'True', 'NoLimiters'],
    ],
  )
  stopping.abort()
  await scheduler.advance(0)
  await led
})

/** Records each status that is written, as `show` returns it. */
function startWritable(
  show: (name: string, status: RateLimitPolicyStatus) => string,
  server: Partial<RulesServer> = {},
) {
  const written: string[] = []
  const write = (call: Call) => {
    const { metadata, status } = call.body as Partial<ReturnType<typeof policyOf>> & {
      readonly status?: RateLimitPolicyStatus
    }
    const { name = '' } = metadata ?? {}
    if (status !== undefined) written.push(show(name, status))
    const resourceVersion = String(1 + written.length)
    const policy = policyOf(name)
    const next = { ...policy.metadata, resourceVersion }
    return Promise.resolve({ ...policy, metadata: next, status })
  }
  return { written, ...start(write, server) }
}

test('the leader writes what limiters report for policies in mode Audit', async () => {
  const given = startWritable((name, { audit }) => `${name} ${audit?.wouldDeny ?? ''}`)
  const { written, scheduler, stopping, led, opened } = given
  await scheduler.advance(2000)
  expect(written).toEqual(['p 0', 'q 0'])
  const report = (hits: number) => {
    const [rule = ''] = ruleIdsOf(specOf('p'), undefined)
    opened[0]?.onAudit([rule, 'unknown'].map((each) => ({ rule: each, hits })))
  }
  report(3)
  await scheduler.advance(2000)
  expect(written.slice(2)).toEqual(['p 3'])
  await scheduler.advance(LIMITER_RECONNECT_MS) // nothing else causes a comparison
  report(1)
  await scheduler.advance(AUDIT_WRITE_MS - LIMITER_RECONNECT_MS - 5000)
  expect(written).toHaveLength(3)
  await scheduler.advance(5000)
  expect(written.slice(3)).toEqual(['p 4'])
  stopping.abort()
  await scheduler.advance(0)
  await led
})

test('a limiter that stops is counted in no status', async () => {
  const limiter = { node: 'l', address: '10.0.0.1', active: '', rejected: undefined }
  const limiters = [limiter, limiter]
  const { written, scheduler, stopping, led, opened } = startWritable(
    (name, { replicas }) => `${name} ${replicas?.total ?? 0}`,
    { replicas: () => limiters },
  )
  await scheduler.advance(2000)
  opened[0]?.onLeave('')
  limiters.pop()
  opened[0]?.onChange()
  await scheduler.advance(2000)
  expect(written).toEqual(['p 2', 'q 2', 'p 1', 'q 1'])
  stopping.abort()
  await scheduler.advance(0)
  await led
})

test('a stop takes at most 2.5 s even if writes, events and limiters hang', async () => {
  const [writes, aborted]: [string[], string[]] = [[], []]
  const hang = ({ method, signal }: Call) => {
    const isFirst = writes.push(method) === 1
    signal?.addEventListener('abort', () => aborted.push(method))
    return isFirst ? Promise.resolve(policyOf('p')) : new Promise(quiet)
  }
  const server = { close: () => new Promise<never>(quiet) }
  const { scheduler, stopping, led, warnings } = start(hang, server)
  await scheduler.advance(2000)
  expect(writes).toEqual(['PATCH', 'POST', 'PATCH'])
  warnings.splice(0)
  stopping.abort()
  let isStopped = false
  void led.then(() => (isStopped = true))
  await scheduler.advance(999)
  expect(aborted).toEqual([])
  await scheduler.advance(1)
  expect(aborted).toEqual(['PATCH'])
  await scheduler.advance(999)
  expect(warnings).toEqual(['the port for limiters was not closed within the deadline'])
  await scheduler.advance(1)
  expect(warnings[1]).toBe("writes still running at the stop's deadline: abandoned")
  await scheduler.advance(499)
  expect(isStopped).toBe(false)
  await scheduler.advance(1)
  expect([isStopped, warnings[2]]).toEqual([true, 'events not written before the stop'])
  await scheduler.advance(60_000)
  expect(writes).toEqual(['PATCH', 'POST', 'PATCH'])
})

test('a stop without running writes and events waits for nothing', async () => {
  const { scheduler, stopping, led, warnings } = startWritable((name) => name)
  await scheduler.advance(2000)
  warnings.splice(0)
  stopping.abort()
  await scheduler.advance(0)
  await led
  await scheduler.advance(60_000)
  expect(warnings).toEqual([])
})
