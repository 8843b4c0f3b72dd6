// A reflector on a fake clock, with an API server whose lists and lines the test defines: back-off
// after failures, when it relists, and which lines it rejects.
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { KubeError, type KubeFailure } from './kube-error.ts'
import { createObjectCache, type ObjectCache } from './object-cache.ts'
import type { KubeObject } from './objects.ts'
import { createReflector, type Reflector } from './reflector.ts'

type Lines = Parameters<KubeApi['lines']>[0]
type Call = Parameters<KubeApi['call']>[0]

const fault = (failure: Partial<KubeFailure> = {}) =>
  new KubeError('no', { status: 500, reason: 'InternalError', ...failure })
const object = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { name, namespace: 'n', uid: name, resourceVersion },
})
const line = (type: string, of: object) => JSON.stringify({ type, object: of })
const never = () => new Promise<never>(() => undefined)

let scheduler: FakeScheduler
let metrics: Metrics
let cache: ObjectCache<KubeObject>
let reflector: Reflector
let lists: (Call & { atMs: number })[]
let watches: (Lines & { atMs: number })[]
let failures: (KubeError | undefined)[]
/** The response to a list, and the lines of each watch. */
let list: (call: Call) => Promise<unknown>
let watch: (nth: number, call: Lines) => AsyncGenerator<string, void>

beforeEach(() => {
  scheduler = createFakeScheduler()
  metrics = createMetrics()
  cache = createObjectCache({ onChange: () => undefined })
  lists = []
  watches = []
  failures = []
  list = () => Promise.resolve({ items: [object('a', '1')], metadata: { resourceVersion: '5' } })
  watch = silent
})

async function* silent(_nth: number, { onOpen }: Lines): AsyncGenerator<string, void> {
  onOpen?.()
  yield await never()
}

/** Yields these lines, then fails or closes. */
const yielding = (lines: readonly string[], error?: Error) =>
  async function* (_nth: number, { onOpen }: Lines): AsyncGenerator<string, void> {
    onOpen?.()
    for (const one of lines) yield await Promise.resolve(one)
    if (error !== undefined) throw error
  }

/** Runs a reflector for `ms`; returns the controller that stops it. */
async function run(
  ms: number,
  more: { labelSelector?: string; random?: () => number } = {},
): Promise<AbortController> {
  const api: KubeApi = {
    call(call) {
      lists.push({ ...call, atMs: scheduler.nowMs() })
      return list(call)
    },
    lines(call) {
      watches.push({ ...call, atMs: scheduler.nowMs() })
      return watch(watches.length, call)
    },
  }
  reflector = createReflector<KubeObject>({
    ...{ api, namespace: 'n', cache, scheduler, metrics, random: () => 0 },
    resource: { group: 'g', version: 'v1', plural: 'things' },
    trim: (given) => given,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    onState: (failure) => failures.push(failure),
    ...more,
  })
  const stopping = new AbortController()
  void reflector.run(stopping.signal)
  await scheduler.advance(ms)
  return stopping
}

const watchedVersions = () => watches.map(({ query }) => query['resourceVersion'])

test('a watch starts at the version of the list, later watches at the last event', async () => {
  const lines = [line('ADDED', object('b', '6')), line('DELETED', object('a', '8'))]
  const bookmark = line('BOOKMARK', { metadata: { resourceVersion: '9' } })
  watch = (nth, call) => (nth === 1 ? yielding([...lines, bookmark]) : silent)(nth, call)
  await run(0, { labelSelector: 'x=y', random: () => 0.5 })
  expect([watchedVersions(), lists.length]).toEqual([['5', '9'], 1])
  expect(cache.list().map(({ metadata: { name } }) => name)).toEqual(['b'])
  expect([lists[0]?.query, watches[0]?.query]).toMatchObject([
    { labelSelector: 'x=y', limit: '500' },
    { labelSelector: 'x=y', allowWatchBookmarks: 'true', timeoutSeconds: '450' },
  ])
  expect([watches[0]?.idleMsMax, watches[0]?.accept]).toEqual([90_000, undefined])
})

test('after failures a watch waits 0.8 s, then twice as long each time', async () => {
  watch = yielding([], fault())
  await run(6000)
  expect(watches.map(({ atMs }) => atMs)).toEqual([0, 800, 2400, 5600])
})

test('a Retry-After of the server extends the delay and never reduces it', async () => {
  watch = (nth, call) =>
    yielding([], fault({ status: 429, retryAfterMs: nth === 1 ? 5000 : 1 }))(nth, call)
  await run(6700)
  expect(watches.map(({ atMs }) => atMs)).toEqual([0, 5000, 6600])
})

test('a Retry-After of an hour extends the delay to a minute', async () => {
  watch = yielding([], fault({ status: 429, retryAfterMs: 3_600_000 }))
  await run(61_000)
  expect(watches.map(({ atMs }) => atMs)).toEqual([0, 60_000])
})

test('a watch without an event has failed if it closes within a second', async () => {
  const endsAfter = (ms: number) =>
    async function* (nth: number): AsyncGenerator<string, void> {
      if (nth > 1) yield await never()
      await new Promise<void>((resolve) => {
        scheduler.after(ms, resolve)
      })
    }
  watch = endsAfter(999)
  await run(2000)
  expect(watches.map(({ atMs }) => atMs)).toEqual([0, 999 + 800])
  watches = []
  watch = endsAfter(1000)
  await run(1500)
  expect(watches.map(({ atMs }) => atMs - 2000)).toEqual([0, 1000])
})

test.each<readonly [string, KubeError, number]>([
  ['410', fault({ status: 410 }), 2],
  ['400', fault({ status: 400 }), 2],
  ['404', fault({ status: 404 }), 2],
  ['an error within the watch', fault({ status: 0, reason: 'RelistRequired' }), 2],
  ['429', fault({ status: 429 }), 1],
  ['500', fault({ status: 500 }), 1],
  ['a broken connection', fault({ status: 0, reason: 'InvalidResponse' }), 1],
])('after %s all objects are relisted if the version is lost: %#', async (_name, error, count) => {
  watch = (nth, call) => (nth === 1 ? yielding([], error) : silent)(nth, call)
  await run(1000)
  expect([lists.length, watches.length]).toEqual([count, 2])
})

test('an error within a watch leads to a list, with any status', async () => {
  const error = line('ERROR', { kind: 'Status', code: 500, reason: 'InternalError' })
  watch = (nth, call) => (nth === 1 ? yielding([error]) : silent)(nth, call)
  await run(1000)
  expect([lists.length, watches.length, failures[2]?.status]).toEqual([2, 2, 500])
})

test('the sixth consecutive broken watch without an event leads to a list', async () => {
  watch = yielding([], fault({ status: 504 }))
  await run(800 * 31) // five delays
  expect([lists.length, watches.length]).toEqual([1, 6])
  await run(0)
})

test('an event between broken watches resets their count', async () => {
  const event = line('BOOKMARK', { metadata: { resourceVersion: '6' } })
  watch = (nth, call) => yielding(nth % 5 === 0 ? [event] : [], fault({ status: 504 }))(nth, call)
  await run(600_000)
  expect(watches.length).toBeGreaterThan(15)
  expect(lists).toHaveLength(1)
})

test('an unreachable or throttling server alone never leads to a list', async () => {
  watch = (nth, call) =>
    yielding([], nth % 2 ? fault({ status: 0, reason: 'Unreachable' }) : fault({ status: 429 }))(
      nth,
      call,
    )
  await run(600_000)
  expect(watches.length).toBeGreaterThan(15)
  expect(lists).toHaveLength(1)
})

test('failures are reported, and so is the recovery once a watch is open', async () => {
  watch = (nth, call) => (nth === 1 ? yielding([], fault()) : silent)(nth, call)
  await run(1000)
  // The list, the watch that opened and failed, and the next watch.
  expect(failures.map((failure) => failure?.status)).toEqual([undefined, undefined, 500, undefined])
  const { values } = await metrics.watchFailures.get()
  expect(values).toMatchObject([{ value: 1, labels: { resource: 'things', reason: '500' } }])
})

test('a timeout is reported unless the watch was open; the watch is resumed', async () => {
  const idle = fault({ status: 0, reason: 'Timeout' })
  const closed = async function* (): AsyncGenerator<string, void> {
    yield await Promise.reject(idle)
  }
  watch = (nth, call) => (nth === 1 ? yielding([], idle)(nth, call) : closed())
  await run(1000)
  // The list, the watch that opened, and the next watch.
  expect([watchedVersions(), failures]).toEqual([
    ['5', '5'],
    [undefined, undefined, idle],
  ])
  const { values } = await metrics.watchFailures.get()
  expect(values).toMatchObject([{ value: 2, labels: { resource: 'things', reason: 'timeout' } }])
})

test('gauges count the objects of all caches of a resource, and those that fail', async () => {
  watch = yielding([], fault())
  for (let nth = 0; nth < 2; nth++) {
    cache = createObjectCache({ onChange: () => undefined })
    await run(0)
  }
  const valueOf = async (gauge: Metrics['failingCaches']) => (await gauge.get()).values[0]?.value
  expect([await valueOf(metrics.watchedObjects), await valueOf(metrics.failingCaches)]).toEqual([
    2, 2,
  ])
  watch = silent
  await scheduler.advance(1000)
  expect(await valueOf(metrics.failingCaches)).toBe(0)
})

test.each([
  ...['{"type":"ADDED"', '{"type":1,"object":{}}', '{"object":{}}', '{"type":"ADDED"}', '7'],
  line('BOOKMARK', { metadata: { resourceVersion: '' } }),
  JSON.stringify({ type: 1, object: object('b', '6') }),
  JSON.stringify({ type: 'ERROR', object: 'no object' }),
])('the line %s breaks the watch, and its version is kept', async (malformed) => {
  watch = (nth, call) => (nth === 1 ? yielding([malformed]) : silent)(nth, call)
  await run(1000)
  expect([failures[2]?.reason, watchedVersions(), lists.length]).toEqual([
    'InvalidResponse',
    ['5', '5'],
    1,
  ])
})

test('a reflector is stuck after 5 minutes without an opened watch or a page', async () => {
  const pages = Promise.withResolvers<object>()
  list = () => pages.promise
  await run(299_000)
  pages.resolve({ items: [], metadata: { resourceVersion: '7' } })
  await scheduler.advance(300_000)
  expect(reflector.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(reflector.isStuck()).toBe(true)
})

test('with an unreachable server, a reflector retries and is not stuck', async () => {
  watch = yielding([], fault({ status: 0, reason: 'Unreachable' }))
  await run(0)
  for (let minute = 0; minute < 20; minute++) {
    await scheduler.advance(60_000)
    expect(reflector.isStuck()).toBe(false)
  }
  expect(watches.length).toBeGreaterThan(20)
})

test('a reflector that is stopped during the list opens no watch', async () => {
  const pages = Promise.withResolvers<object>()
  list = () => pages.promise
  const stopping = await run(0)
  stopping.abort()
  pages.resolve({ items: [], metadata: { resourceVersion: '7' } })
  await scheduler.advance(1000)
  expect([watches.length, reflector.isStuck()]).toEqual([0, false])
})

test('a reflector that stops during a back-off delay is not stuck', async () => {
  watch = yielding([], fault())
  const stopping = await run(100)
  stopping.abort()
  await scheduler.advance(600_000)
  expect([watches.length, scheduler.waiting(), reflector.isStuck()]).toEqual([1, 0, false])
})

test('a list whose token has expired starts over after the delay', async () => {
  let rejected = 0
  list = ({ query }) => {
    if (query?.['continue'] === undefined)
      return Promise.resolve({ items: [], metadata: { resourceVersion: '7', continue: 't' } })
    if (rejected++ === 0) return Promise.reject(fault({ status: 410 }))
    return Promise.resolve({ items: [], metadata: { resourceVersion: '9' } })
  }
  await run(1000)
  expect(lists.map(({ query, atMs }) => [query?.['limit'], query?.['continue'], atMs])).toEqual([
    ['500', undefined, 0],
    ['500', 't', 0],
    ['500', undefined, 800],
    ['500', 't', 800],
  ])
  expect(watchedVersions()).toEqual(['9'])
})
