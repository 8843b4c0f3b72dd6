// The Secrets with API keys: only hashes are kept, a deleted Secret has no keys, and an API server
// that fails removes none. The API server is a function, and time is simulated.
import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { untilAborted } from '../scheduler.ts'
import { watchApiKeys } from './api-key-secrets.ts'
import { watchPolicies } from './watch-policies.ts'

const KEY = 'partner-key-1'
const HASH = `sha256:${createHash('sha256').update(KEY).digest('hex')}`
const base64 = (value: string) => Buffer.from(value).toString('base64')
const secret = (resourceVersion: string, data: object, metadata: object = {}) => ({
  metadata: {
    ...{ name: 's', namespace: 'n', uid: 'u', resourceVersion, labels: { tier: 'gold' } },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(data) },
    ...metadata,
  },
  data,
})

const GRANTS = [
  { domain: 'd', namespaces: ['n'], apiKeys: true },
  { domain: 'd', namespaces: ['other'] },
]

function start(events: readonly string[], list: () => Promise<unknown>) {
  const scheduler = createFakeScheduler()
  const paths: string[] = []
  const entries: unknown[] = []
  const failures: (KubeError | undefined)[] = []
  let changes = 0
  const api: KubeApi = {
    call(call) {
      paths.push(`${call.path}?${new URLSearchParams(call.query).toString()}`)
      return list()
    },
    async *lines({ query, signal, onOpen }) {
      onOpen?.()
      if (query['resourceVersion'] === '1') yield* events
      await untilAborted(signal)
    },
  }
  const record = (...args: unknown[]) => entries.push(args)
  const watch = watchApiKeys(
    {
      ...{ api, scheduler, random: () => 0.5, metrics: createMetrics() },
      grants: GRANTS,
      log: { debug: record, info: record, warn: record },
      onState: (_, failure) => failures.push(failure),
    },
    () => changes++,
  )
  const stopping = new AbortController()
  void watch.run(stopping.signal)
  return { scheduler, watch, paths, entries, failures, stopping, changes: () => changes }
}

const listOf = (...items: object[]) =>
  Promise.resolve({ items, metadata: { resourceVersion: '1' } })
const event = (type: string, object: object) => JSON.stringify({ type, object })

test('only labelled Secrets of allowed namespaces are read, and only hashes are kept', async () => {
  const { scheduler, watch, paths, stopping, changes } = start([], () =>
    listOf(secret('1', { a: base64(`${KEY}\n`), empty: '' })),
  )
  expect(watch.unsynced()).toEqual(['n'])
  await scheduler.advance(0)
  expect(watch.unsynced()).toEqual([])
  const query = 'labelSelector=curtail.dev%2Fapi-keys%3Dtrue&limit=4'
  expect(paths).toEqual([`/api/v1/namespaces/n/secrets?${query}`])
  expect(watch.list('n')).toMatchObject([
    {
      ...{ name: 's', labels: { tier: 'gold' }, hashes: [HASH] },
      problems: ['the value of empty is empty'],
    },
  ])
  expect(watch.list('other')).toEqual([])
  const kept = inspect(watch.list('n'), { depth: null, showHidden: true })
  expect(kept).not.toContain(KEY)
  expect(kept).not.toContain(base64(KEY).slice(0, 8))
  expect(changes()).toBe(1)
  stopping.abort()
})

test('the Secrets are sorted by name, and are the same array until one changes', async () => {
  const b = secret('1', { a: base64(KEY) }, { name: 'b' })
  const a = secret('2', { a: base64(KEY) }, { name: 'a' })
  const { scheduler, watch, stopping } = start([event('ADDED', a)], () => listOf(b))
  const before = watch.list('n')
  expect(watch.list('n')).toBe(before)
  await scheduler.advance(0)
  expect(watch.list('n').map(({ name }) => name)).toEqual(['a', 'b'])
  expect(watch.list('n')).toBe(watch.list('n'))
  stopping.abort()
})

test('a Secret that is deleted, or that is being deleted, has no keys', async () => {
  const data = { a: base64(KEY) }
  for (const last of [
    event('DELETED', secret('2', data)),
    event('MODIFIED', secret('2', data, { deletionTimestamp: '2026-01-01T00:00:00Z' })),
  ]) {
    const { scheduler, watch, stopping, changes } = start([last], () => listOf(secret('1', data)))
    await scheduler.advance(0)
    expect(watch.list('n')).toEqual([])
    expect(changes()).toBe(2)
    stopping.abort()
  }
})

test('while the API server fails, the keys are kept; no error contains a Secret', async () => {
  const unreadable = `{"type":"MODIFIED","object":{"data":{"a":"${base64(KEY)}","b":x`
  let isFirst = true
  const { scheduler, watch, entries, failures, stopping } = start([unreadable], () => {
    if (!isFirst)
      return Promise.reject(new KubeError('forbidden', { status: 403, reason: 'Forbidden' }))
    isFirst = false
    return listOf(secret('1', { a: base64(KEY) }))
  })
  await scheduler.advance(600_000)
  expect(failures.at(-1)?.status).toBe(403)
  expect(watch.list('n')).toMatchObject([{ hashes: [HASH] }])
  const errors = inspect([entries, failures], { depth: null, showHidden: true })
  expect(errors).toContain('a line of a watch is not JSON, or not an event')
  expect(errors).not.toContain(base64(KEY).slice(-4))
  stopping.abort()
})

test('the policies of a namespace count as unknown until its Secrets are listed', async () => {
  const scheduler = createFakeScheduler()
  const quiet = () => undefined
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const api: KubeApi = {
    call: ({ path }) => (path.endsWith('/n/secrets') ? promise : listOf()),
    async *lines({ signal }) {
      yield* []
      await untilAborted(signal)
    },
  }
  const watch = watchPolicies(
    {
      ...{ api, scheduler, random: () => 0.5, metrics: createMetrics(), onState: quiet },
      ...{ grants: GRANTS, log: { debug: quiet, info: quiet, warn: quiet } },
    },
    quiet,
    quiet,
  )
  const stopping = new AbortController()
  void watch.run(stopping.signal)
  await scheduler.advance(1000)
  expect(watch.unsynced()).toEqual(['n'])
  resolve(await listOf())
  await scheduler.advance(0)
  expect(watch.unsynced()).toEqual([])
  stopping.abort()
})
