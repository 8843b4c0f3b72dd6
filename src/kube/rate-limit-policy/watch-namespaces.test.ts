// The lists of several namespaces, on a fake clock and a fake API server: they take turns, and a
// slow or failing one delays the others only for a bounded time.
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { NAMESPACES_MAX } from '../../policies/shares.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import type { KubeObject } from '../objects.ts'
import { untilAborted } from '../scheduler.ts'
import { type NamespaceWatch, watchNamespaces } from './watch-namespaces.ts'

const NAMESPACES = Array.from({ length: NAMESPACES_MAX }, (_, at) => `n${at}`)
const LIST_MS = 50
const TURN_MS = 2000
const quiet = () => undefined
const forbidden = {
  ms: 0,
  error: new KubeError('forbidden', { status: 403, reason: 'Forbidden' }),
}

let scheduler: FakeScheduler
let watch: NamespaceWatch<KubeObject>
let stopping: AbortController
/** The lists that run, the maximum so far, and the namespace and time of each start. */
let running: number
let runningMax: number
let starts: [string, number][]
/** Namespaces whose watch is open. */
let watched: Set<string>
/** How long the list of a namespace takes, and how it fails. */
let takes: (namespace: string) => number | { readonly ms: number; readonly error: KubeError }

const namespaceOf = (path: string) => path.split('/').at(-2) ?? ''

beforeEach(() => {
  scheduler = createFakeScheduler()
  stopping = new AbortController()
  running = runningMax = 0
  starts = []
  watched = new Set()
  takes = () => LIST_MS
  const api: KubeApi = {
    async call({ path, signal = stopping.signal }) {
      const namespace = namespaceOf(path)
      starts.push([namespace, scheduler.nowMs()])
      const fate = takes(namespace)
      const { ms, error } = typeof fate === 'number' ? { ms: fate, error: undefined } : fate
      running++
      runningMax = Math.max(runningMax, running)
      const done = new Promise<void>((resolve) => scheduler.after(ms, resolve))
      await Promise.race([done, untilAborted(signal)])
      running--
      if (error !== undefined) throw error
      if (signal.aborted) throw new KubeError('aborted', { status: 0, reason: 'Unreachable' })
      return { items: [], metadata: { resourceVersion: '1' } }
    },
    async *lines({ path, signal, onOpen }) {
      watched.add(namespaceOf(path))
      onOpen?.()
      yield* []
      await untilAborted(signal)
      watched.delete(namespaceOf(path))
    },
  }
  watch = watchNamespaces<KubeObject>({
    ...{ api, scheduler, random: () => 0, metrics: createMetrics(), namespaces: NAMESPACES },
    resource: { group: 'g', version: 'v1', plural: 'things' },
    trim: (given) => given,
    log: { debug: quiet, info: quiet, warn: quiet },
    ...{ onChange: quiet, onState: quiet },
  })
})
const run = async (ms: number) => {
  const done = watch.run(stopping.signal)
  await scheduler.advance(ms)
  return done
}
const isHung = (namespace: string) => namespace === 'n0'

test('one namespace is listed at a time, and then all are watched', async () => {
  void run(0)
  await scheduler.advance(LIST_MS * NAMESPACES.length)
  expect([runningMax, starts.map(([namespace]) => namespace)]).toEqual([1, NAMESPACES])
  expect([watch.unsynced(), watched.size]).toEqual([[], NAMESPACES.length])
})

test('a namespace whose list hangs delays the next one for 2 s', async () => {
  takes = (namespace) => (isHung(namespace) ? 1e9 : LIST_MS)
  void run(0)
  await scheduler.advance(TURN_MS + LIST_MS * NAMESPACES.length)
  expect(starts.slice(0, 3)).toEqual([
    ['n0', 0],
    ['n1', TURN_MS],
    ['n2', TURN_MS + LIST_MS],
  ])
  expect([runningMax, watch.unsynced()]).toEqual([2, ['n0']])
})

test('no reflector counts as stuck while all lists are slow and fail', async () => {
  const failure = { status: 503, reason: 'ServiceUnavailable', retryAfterMs: 60_000 }
  takes = () => ({ ms: 59_000, error: new KubeError('no', failure) })
  void run(0)
  for (let second = 0; second < 600; second++) {
    await scheduler.advance(1000)
    expect(watch.isStuck()).toBe(false)
  }
})

test('a namespace whose list fails delays no other one', async () => {
  takes = (namespace) => (isHung(namespace) ? forbidden : LIST_MS)
  void run(0)
  await scheduler.advance(LIST_MS * NAMESPACES.length)
  expect([watch.unsynced(), starts[1]]).toEqual([['n0'], ['n1', 0]])
})

test('a refresh relists each namespace once, in turn', async () => {
  void run(0)
  await scheduler.advance(60_000)
  starts = []
  const refreshed = watch.refresh(10_000, stopping.signal)
  await scheduler.advance(LIST_MS * NAMESPACES.length)
  expect(await refreshed).toEqual([])
  expect([runningMax, starts.map(([namespace]) => namespace)]).toEqual([1, NAMESPACES])
  expect(watched.size).toBe(NAMESPACES.length)
})

test('a refresh reports the namespaces that are not relisted within its time', async () => {
  void run(0)
  await scheduler.advance(60_000)
  takes = (namespace) => (isHung(namespace) ? 1e9 : namespace === 'n1' ? forbidden : LIST_MS)
  const refreshed = watch.refresh(10_000, stopping.signal)
  await scheduler.advance(10_000)
  expect(await refreshed).toEqual(['n0', 'n1'])
  expect(watch.unsynced()).toEqual([]) // the earlier lists stay
})

test('a stop ends a refresh and all lists at once', async () => {
  takes = () => 1e9
  const done = run(0)
  const refreshed = watch.refresh(10_000, stopping.signal)
  await scheduler.advance(100)
  stopping.abort()
  await scheduler.advance(0)
  expect(await refreshed).toEqual(NAMESPACES)
  await done
  expect([running, watched.size]).toEqual([0, 0])
})
