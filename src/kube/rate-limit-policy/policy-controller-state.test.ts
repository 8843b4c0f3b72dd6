// What the controller of RateLimitPolicies reports about itself, and when it sends rules. The API
// server is a function whose watches yield what the test pushes; time is simulated.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { untilAborted } from '../scheduler.ts'
import { createPolicyController, type PolicyControllerDeps } from './policy-controller.ts'
import type { LimiterEvents, RulesServer } from './rules-port.ts'

type Call = Parameters<KubeApi['call']>[0]

const quiet = () => undefined
const policyOf = (name: string, metadata: object = {}, more: object = {}) => ({
  metadata: {
    ...{ name, namespace: 'n', uid: name, resourceVersion: '1', generation: 1 },
    ...{ creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
  },
  spec: {
    ...{ domain: 'd', match: [{ key: name }], mode: 'Audit', onStoreError: 'Local' },
    limits: [{ name: 'l', algorithm: 'FixedWindow', requests: 1, window: '1s' }],
  },
  ...more,
})
const lost = () => new KubeError('lost', { status: 0, reason: 'Unreachable' })
const limiterOf = (active: string) => ({ node: 'l', address: '', active, rejected: undefined })

interface Given extends Partial<PolicyControllerDeps> {
  readonly list?: () => Promise<unknown>
  readonly write?: (call: Call) => Promise<unknown>
  readonly server?: Partial<RulesServer>
}

/** A controller of the policy `p`; records what it sends and logs. */
function start({ list, write = () => Promise.reject(lost()), server, ...given }: Given = {}) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const [sent, entries, lines]: [string[], [string, unknown][], string[]] = [[], [], []]
  const opened: LimiterEvents[] = []
  const listed = { items: [policyOf('p')], metadata: { resourceVersion: '1' } }
  let wake: () => void = quiet
  const api: KubeApi = {
    call: (call) =>
      call.method === 'GET' ? (list ?? (() => Promise.resolve(listed)))() : write(call),
    async *lines({ signal, onOpen }) {
      onOpen?.()
      while (!signal.aborted) {
        yield* lines.splice(0)
        await Promise.race([new Promise<void>((resolve) => (wake = resolve)), untilAborted(signal)])
      }
    },
  }
  const record = (fields: unknown, message = '') => {
    if (message !== 'reconcile failed') entries.push([message, fields]) // of lost writes
  }
  const controller = createPolicyController({
    ...{ api, scheduler, metrics, wallMs: () => 0, random: () => 0.5 },
    events: { emit: quiet, flush: () => Promise.resolve() },
    grants: [{ domain: 'd', namespaces: ['n'] }],
    openServer(on) {
      opened.push(on)
      return Promise.resolve({
        ...{ port: 1, publish: ({ version }) => sent.push(version) },
        ...{ replicas: () => [], close: () => Promise.resolve(), ...server },
      })
    },
    ...{ isLeading: () => true, store: undefined, onState: quiet, onPort: quiet },
    log: { debug: quiet, info: quiet, warn: record, error: record } as never,
    ...given,
  })
  const stopping = new AbortController()
  const watching = controller.watch(stopping.signal)
  const push = (type: string, object: object) => {
    lines.push(JSON.stringify({ type, object }))
    wake()
  }
  const lead = () => controller.lead(stopping.signal)
  const stop = async (leading: Promise<void>) => {
    stopping.abort()
    await scheduler.advance(0)
    await Promise.all([leading, watching])
  }
  const state = { controller, scheduler, metrics, sent, entries, opened, stopping, watching }
  return { ...state, push, lead, stop }
}
type Started = ReturnType<typeof start>

type Labels = Readonly<Record<string, string | number | undefined>>

const rowsOf = ({ values }: { values: readonly { labels: Labels; value: number }[] }) =>
  values.map(({ labels, value }) => [...Object.values(labels), value])
const failedTasks = async ({ metrics }: Started) => rowsOf(await metrics.backgroundFailures.get())

test('the metrics have the conditions of the policies and the numbers of limiters', async () => {
  const condition = { type: 'Accepted', status: 'True', reason: 'Accepted' }
  const status = { conditions: [condition] }
  const items = [policyOf('p', {}, { status }), policyOf('q', {}, { status })]
  const list = () => Promise.resolve({ items, metadata: { resourceVersion: '1' } })
  const given = start({ list, server: { replicas: () => [limiterOf('x')] } })
  const { controller, scheduler, metrics, push, lead, stop } = given
  await scheduler.advance(0)
  controller.updateMetrics()
  expect(rowsOf(await metrics.policyConditions.get())).toEqual([
    ['Accepted', 'True', 'Accepted', 2],
  ])
  const leading = lead()
  await scheduler.advance(1000)
  push('DELETED', policyOf('q', { resourceVersion: '2' }))
  await scheduler.advance(1000)
  controller.updateMetrics()
  expect(rowsOf(await metrics.policyConditions.get())).toEqual([
    ['Accepted', 'True', 'Accepted', 1],
  ])
  expect(rowsOf(await metrics.policyLimiters.get())).toEqual([
    ['current', 0],
    ['outdated', 1],
    ['missing', 0],
  ])
  await stop(leading)
})

test('the metrics have the unfinished work of both queues', async () => {
  const store = {
    ...{ secret: { namespace: 'n', name: 's' }, serialize: () => new Promise<never>(quiet) },
  }
  const { controller, scheduler, metrics, lead, stopping } = start({
    ...{ store, write: () => new Promise<never>(quiet) },
  })
  void lead()
  await scheduler.advance(5000)
  controller.updateMetrics()
  const unfinished = rowsOf(await metrics.queueLongestSeconds.get())
  expect(unfinished.map(([name, seconds]) => [name, Number(seconds) > 3])).toEqual([
    ['ratelimitpolicy', true],
    ['ratelimitpolicy-version', true],
  ])
  expect(controller.isStuck()).toBe(false)
  await scheduler.advance(121_000)
  expect(controller.isStuck()).toBe(true)
  stopping.abort()
})

test('sends no rules before all policies are listed, and warns after 10 s', async () => {
  let isFailing = true
  const listed = { items: [policyOf('p')], metadata: { resourceVersion: '1' } }
  const list = () => (isFailing ? Promise.reject(lost()) : Promise.resolve(listed))
  const { scheduler, entries, opened, sent, lead, stop } = start({ list })
  const leading = lead()
  await scheduler.advance(24_000) // a refresh takes up to 15 s
  expect([entries, opened]).toEqual([[], []])
  await scheduler.advance(2000)
  const [[message, fields] = ['', undefined]] = entries
  expect([message, fields]).toEqual([
    expect.stringContaining('no rules are sent'),
    { namespaces: ['n'] },
  ])
  isFailing = false
  await scheduler.advance(60_000)
  expect([opened.length, sent.length, entries.length]).toEqual([1, 1, 1])
  await stop(leading)
})

test('a leader that stops before all policies are listed opens no port', async () => {
  const { scheduler, opened, lead, stop } = start({ list: () => Promise.reject(lost()) })
  const leading = lead()
  await scheduler.advance(60_000)
  await stop(leading)
  expect(opened).toEqual([])
})

test('a replica without the Lease sends nothing until it is renewed', async () => {
  let isLeading = false
  const { scheduler, sent, lead, stop } = start({ isLeading: () => isLeading })
  const leading = lead()
  await scheduler.advance(5000)
  expect(sent).toEqual([])
  isLeading = true
  await scheduler.advance(500)
  expect(sent).toHaveLength(1)
  await stop(leading)
})

test('a change of a policy is sent, one of only its status is not', async () => {
  const { scheduler, sent, push, lead, stop } = start()
  const leading = lead()
  await scheduler.advance(1000)
  push('MODIFIED', policyOf('p', { resourceVersion: '2' }, { status: { observedGeneration: 1 } }))
  await scheduler.advance(1000)
  expect(sent).toHaveLength(1)
  const { metadata, spec } = policyOf('p', { resourceVersion: '3', generation: 2 })
  push('MODIFIED', { metadata, spec: { ...spec, match: [{ key: 'other' }] } })
  await scheduler.advance(1000)
  expect(new Set(sent).size).toBe(2)
  await stop(leading)
})

const fail = () => {
  throw new Error('defect')
}

interface Defect {
  readonly task: string
  readonly server?: Partial<RulesServer>
  readonly act?: (on: LimiterEvents) => void
}
const countNull = ({ onAudit }: LimiterEvents) => {
  onAudit([null] as never)
}

test.each<readonly [string, Defect]>([
  ['sent', { task: 'send-version', server: { publish: fail } }],
  ['counted', { task: 'audit-policies', act: countNull }],
])('a defect while rules are %s is counted and logged', async (_name, defect) => {
  const { task, server = {}, act = quiet } = defect
  const given = start({ server })
  const leading = given.lead()
  await given.scheduler.advance(1000)
  const [on] = given.opened
  if (on !== undefined) act(on)
  expect(await failedTasks(given)).toContainEqual([task, 1])
  expect(given.entries).toHaveLength(1)
  await given.stop(leading)
})

test('a defect while a limiter stops is counted and logged', async () => {
  let isFailing = false
  const replicas = () => {
    if (isFailing) throw new Error('defect')
    return []
  }
  const given = start({ server: { replicas } })
  const leading = given.lead()
  await given.scheduler.advance(1000)
  isFailing = true
  given.opened[0]?.onLeave('x')
  expect(await failedTasks(given)).toEqual([['count-limiters', 1]])
  isFailing = false
  await given.stop(leading)
})

test('after a stop, a replica compiles nothing', async () => {
  const given = start()
  const { scheduler, push, stopping, watching } = given
  await scheduler.advance(10_000)
  push('MODIFIED', { ...policyOf('p', { resourceVersion: '2', generation: 2 }), spec: {} })
  await scheduler.advance(0)
  stopping.abort()
  await watching
  await scheduler.advance(100_000)
  expect(await failedTasks(given)).toEqual([])
})
