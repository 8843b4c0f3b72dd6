// A refresh of a reflector on a fake clock: it completes only with a list that started later,
// whatever the reflector does at that moment.
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { KubeError } from './kube-error.ts'
import { createObjectCache, type ObjectCache } from './object-cache.ts'
import type { KubeObject } from './objects.ts'
import { createReflector, type Reflector } from './reflector.ts'
import { untilAborted } from './scheduler.ts'

const quiet = () => undefined
const fault = new KubeError('no', { status: 500, reason: 'InternalError' })
const object = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { name, namespace: 'n', uid: name, resourceVersion },
})
const listOf = (resourceVersion: string, ...items: KubeObject[]) => ({
  items,
  metadata: { resourceVersion },
})
const never = () => new Promise<never>(quiet)

let scheduler: FakeScheduler
let cache: ObjectCache<KubeObject>
let reflector: Reflector
let failures: KubeError[]
let lists: number
/** The versions from which watches started. */
let watches: (string | undefined)[]
let list: () => Promise<unknown>
/** The event of the first watch. */
let event: Promise<string>

beforeEach(() => {
  scheduler = createFakeScheduler()
  cache = createObjectCache({ onChange: quiet })
  failures = []
  lists = 0
  watches = []
  list = () => Promise.resolve(listOf('5', object('a', '1')))
  event = never()
})

/** Runs the reflector for `ms`. */
async function run(ms: number) {
  reflector = createReflector<KubeObject>({
    api: {
      call() {
        lists++
        return list()
      },
      async *lines({ query, signal, onOpen }) {
        const nth = watches.push(query['resourceVersion'])
        onOpen?.()
        const line = await Promise.race([nth === 1 ? event : never(), untilAborted(signal)])
        if (line !== undefined) yield line
      },
    },
    ...{ namespace: 'n', cache, scheduler, metrics: createMetrics(), random: () => 0 },
    resource: { group: 'g', version: 'v1', plural: 'things' },
    trim: (given) => given,
    log: { debug: quiet, info: quiet, warn: quiet },
    onState: (failure) => {
      if (failure !== undefined) failures.push(failure)
    },
  })
  void reflector.run(new AbortController().signal)
  await scheduler.advance(ms)
}

/** Starts a refresh, and records when it completes. */
function refresh() {
  const state = { isDone: false }
  void reflector.refresh().then(() => (state.isDone = true))
  return state
}

test('a refresh ends the watch, relists, and watches from there', async () => {
  await run(1000)
  const pages = Promise.withResolvers<object>()
  list = () => pages.promise
  const state = refresh()
  await scheduler.advance(0)
  expect([state.isDone, lists]).toEqual([false, 2])
  pages.resolve(listOf('9', object('b', '8')))
  await scheduler.advance(60_000)
  expect([state.isDone, watches, lists, failures]).toEqual([true, ['5', '9'], 2, []])
  expect(cache.list().map(({ metadata: { name } }) => name)).toEqual(['b'])
})

test('a list that started before the refresh does not complete it', async () => {
  const [first, second] = [Promise.withResolvers<object>(), Promise.withResolvers<object>()]
  list = () => first.promise
  await run(0)
  first.resolve(listOf('7'))
  const state = refresh()
  list = () => second.promise
  await scheduler.advance(0)
  expect([state.isDone, lists, reflector.hasSynced()]).toEqual([false, 2, false])
  second.resolve(listOf('9'))
  await scheduler.advance(0)
  expect([state.isDone, watches]).toEqual([true, ['9']])
})

test('an event that arrives together with a refresh does not replace the list', async () => {
  const next = Promise.withResolvers<string>()
  event = next.promise
  await run(0)
  next.resolve(JSON.stringify({ type: 'ADDED', object: object('b', '6') }))
  list = () => Promise.resolve(listOf('9'))
  const state = refresh()
  await scheduler.advance(0)
  expect([state.isDone, lists, watches]).toEqual([true, 2, ['5', '9']])
})

test('a refresh interrupts a back-off delay, and completes with a successful list', async () => {
  list = () => Promise.reject(fault)
  await run(100)
  const states = [refresh(), refresh()]
  await scheduler.advance(0)
  expect([lists, states.map(({ isDone }) => isDone)]).toEqual([2, [false, false]])
  list = () => Promise.resolve(listOf('7'))
  await scheduler.advance(30_000)
  expect(states.map(({ isDone }) => isDone)).toEqual([true, true])
})

test('a cancelled refresh resumes the watch, even while lists fail', async () => {
  await run(1000)
  list = () => Promise.reject(fault)
  const refreshed = reflector.refresh()
  await scheduler.advance(300_000)
  expect(failures.length).toBeGreaterThan(5)
  expect([watches, cache.size()]).toEqual([['5'], 1])
  reflector.cancelRefresh()
  expect(await refreshed).toBe(false)
  await scheduler.advance(60_000)
  expect([watches, reflector.hasSynced()]).toEqual([['5', '5'], true])
})
