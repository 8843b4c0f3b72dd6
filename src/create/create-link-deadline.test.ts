// Every create completes by its deadline, in any state of the store.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { Link } from '../links/link.ts'
import { monotonicMs } from '../resilience/deadline.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createMemoryIntentStore } from '../../test/kit/stores/memory-intent-store.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import {
  CREATE_MS_MAX,
  createBoundedCreate,
  type CreateOutcome,
  type BoundedCreateDeps,
} from './create-link.ts'

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] })
})
afterEach(() => {
  jest.useRealTimers()
})

/** Advances the clock, and runs what is then due. */
async function advance(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

const request = {
  longUrl: 'https://x.example/',
  alias: 'a',
  ttlDays: 1,
  creatorId: null,
  idempotencyKey: undefined,
}

function boundedCreateOf(change: Partial<BoundedCreateDeps> = {}) {
  const errors: unknown[] = []
  const stored: string[] = []
  const create = createBoundedCreate({
    links: createMemoryLinkStore(),
    intents: createMemoryIntentStore(Date.now),
    supply: { take: () => ({ kind: 'pool-empty' }) },
    invalidateCaches(code) {
      stored.push(code)
      return undefined
    },
    onErrorAfterResponse: (error) => errors.push(error),
    nowMs: Date.now,
    monotonicMs,
    metrics: createMetrics(),
    ...change,
  })
  return { create, errors, stored }
}

test('a create times out on a hung store; its delayed result invalidates caches', async () => {
  const hung = Promise.withResolvers<undefined>()
  const insertIfAbsent = ({ writerId }: Link) => hung.promise.then(() => writerId)
  const links = { ...createMemoryLinkStore(), insertIfAbsent }
  const { create, stored } = boundedCreateOf({ links })
  const outcomes: CreateOutcome[] = []
  void create(request).then((outcome) => outcomes.push(outcome))
  await advance(2799)
  expect(outcomes).toEqual([])
  await advance(1)
  expect(outcomes).toEqual([{ kind: 'outcome-unknown' }])
  expect(stored).toEqual([])
  hung.resolve(undefined)
  await advance(0)
  expect(stored).toEqual(['a'])
})

test('while the store is unavailable no call is sent and no code is taken', async () => {
  const never = () => Promise.reject(new Error('the store was called'))
  const links = { insertIfAbsent: never, readSerial: never }
  const take = () => {
    throw new Error('a code was taken')
  }
  const { create } = boundedCreateOf({ links, supply: { take }, isStoreAvailable: () => false })
  expect(await create({ ...request, alias: undefined })).toEqual({ kind: 'not-created' })
})

test('a defect fails the request, or is reported if it occurs after the response', async () => {
  const hung = Promise.withResolvers<string>()
  const links = { ...createMemoryLinkStore(), insertIfAbsent: () => hung.promise }
  const { create, errors } = boundedCreateOf({ links })
  const early = create(request)
  hung.reject(new TypeError('a defect'))
  await expect(early).rejects.toThrow('a defect')
  expect(errors).toEqual([])
  const delayed = Promise.withResolvers<string>()
  const other = boundedCreateOf({ links: { ...links, insertIfAbsent: () => delayed.promise } })
  const timedOut = other.create(request)
  await advance(CREATE_MS_MAX)
  expect(await timedOut).toEqual({ kind: 'outcome-unknown' })
  delayed.reject(new TypeError('a delayed defect'))
  await advance(0)
  expect(other.errors).toEqual([new TypeError('a delayed defect')])
})

test('a defect that is not an error fails the request with an error', async () => {
  const { promise, reject } = Promise.withResolvers<string>()
  reject('a defect')
  const links = { ...createMemoryLinkStore(), insertIfAbsent: () => promise }
  await expect(boundedCreateOf({ links }).create(request)).rejects.toStrictEqual(
    new Error('a defect'),
  )
})

test('a result before the deadline is returned, and no timeout follows', async () => {
  const { create, errors } = boundedCreateOf()
  const outcome = await create(request)
  expect(outcome).toMatchObject({ kind: 'created', link: { code: 'a' } })
  await advance(2 * CREATE_MS_MAX)
  expect([errors, jest.getTimerCount()]).toEqual([[], 0])
})
