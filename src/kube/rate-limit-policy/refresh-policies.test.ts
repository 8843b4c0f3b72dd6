// A new leader relists policies and API keys: the log names the namespaces that were not read
// before the deadline, which keep their earlier lists. The API server is a function, and time is
// simulated.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { untilAborted } from '../scheduler.ts'
import { watchPolicies } from './watch-policies.ts'

const DEADLINE_MS = 15_000
const quiet = () => undefined
const policy = {
  metadata: { name: 'p', namespace: 'a', uid: 'p', resourceVersion: '1' },
  spec: { match: [{ key: 'k' }] },
}

/** Watches the namespaces `a` and `b`; lists whose path is in `unreadable` fail. */
function start() {
  const scheduler = createFakeScheduler()
  const unreadable = new Set<string>()
  const paths: string[] = []
  const logged: unknown[] = []
  const api: KubeApi = {
    call({ path }) {
      const end = path.split('/').slice(-2).join('/')
      paths.push(end)
      if (unreadable.has(end))
        return Promise.reject(new KubeError('no', { status: 403, reason: 'Forbidden' }))
      const items = end === 'a/ratelimitpolicies' ? [policy] : []
      return Promise.resolve({ items, metadata: { resourceVersion: '1' } })
    },
    async *lines({ signal }) {
      yield* []
      await untilAborted(signal)
    },
  }
  const watch = watchPolicies(
    {
      ...{ api, scheduler, random: () => 0, metrics: createMetrics(), onState: quiet },
      grants: [{ domain: 'd', namespaces: ['a', 'b'], apiKeys: true }],
      log: { debug: quiet, info: quiet, warn: (fields: unknown) => logged.push(fields) },
    },
    quiet,
    quiet,
  )
  const stopping = new AbortController()
  void watch.run(stopping.signal)
  const refresh = () => {
    const state = { isDone: false }
    void watch.refresh(stopping.signal).then(() => (state.isDone = true))
    return state
  }
  return { scheduler, watch, unreadable, paths, logged, stopping, refresh }
}

const ALL = ['a/ratelimitpolicies', 'a/secrets', 'b/ratelimitpolicies', 'b/secrets']

test('a refresh completes once all policies and Secrets are relisted', async () => {
  const { scheduler, paths, logged, refresh } = start()
  await scheduler.advance(1000)
  paths.length = 0
  const state = refresh()
  await scheduler.advance(0)
  expect([state.isDone, paths.toSorted(), logged]).toEqual([true, ALL, []])
})

test('a namespace with unreadable Secrets delays a refresh for 15 s, and is logged', async () => {
  const { scheduler, watch, unreadable, logged, refresh } = start()
  await scheduler.advance(1000)
  unreadable.add('a/secrets')
  const state = refresh()
  await scheduler.advance(DEADLINE_MS - 1)
  expect([state.isDone, logged]).toEqual([false, []])
  await scheduler.advance(1)
  expect([state.isDone, logged]).toEqual([true, [{ namespaces: ['a'] }]])
  expect([watch.unsynced(), watch.list().length]).toEqual([[], 1])
})

test('a namespace that was never listed is not logged: it has no earlier list', async () => {
  const { scheduler, watch, unreadable, logged, refresh } = start()
  unreadable.add('b/ratelimitpolicies')
  await scheduler.advance(1000)
  const state = refresh()
  await scheduler.advance(DEADLINE_MS)
  expect([state.isDone, watch.unsynced(), logged]).toEqual([true, ['b'], []])
})

test('a stop ends a refresh at once, without a log entry', async () => {
  const { scheduler, unreadable, logged, stopping, refresh } = start()
  await scheduler.advance(1000)
  unreadable.add('a/secrets')
  const state = refresh()
  await scheduler.advance(100)
  stopping.abort()
  await scheduler.advance(0)
  expect([state.isDone, logged]).toEqual([true, []])
})
