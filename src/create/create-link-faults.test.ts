// Creates while a store fails or rejects work, or while the system clock is set back: each create
// completes by its deadline, and reports only what the store has confirmed.
import { describe, expect, test } from '@jest/globals'
import { createUseCase, PAUSES_MAX, unknown } from '../../test/kit/links/creator.ts'
import type { Intent, IntentStore } from '../links/intent-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryIntentStore } from '../../test/kit/stores/memory-intent-store.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import { CREATE_MS_MAX, type CreateDeps } from './create-link.ts'

const DAY_MS = 86_400_000

test('a create times out on an unavailable store, and its caches are invalidated', async () => {
  const links = { insertIfAbsent: unknown, readSerial: unknown }
  const { create, stored, clock, pauses, metrics } = createUseCase(['gggggg1'], {
    links,
    random: () => 1,
  })
  const startMs = clock.nowMs
  expect(await create()).toEqual({ kind: 'outcome-unknown' })
  expect(stored).toEqual(['gggggg1'])
  expect(clock.nowMs - startMs).toBe(CREATE_MS_MAX)
  expect(Math.max(...pauses)).toBe(320)
  expect(pauses.length).toBeLessThan(30)
  const { values } = await metrics.claims.get()
  expect(values).toContainEqual({ labels: { result: 'unknown' }, value: 1 })
})

test.each(['readSerial', 'insertIfAbsent'] as const)(
  'if every %s of its intent fails, a create returns not-created at the deadline',
  async (method) => {
    const { nowMs } = { nowMs: () => 0 }
    const failing = { readSerial: unknown, insertIfAbsent: unknown }
    const intents = { ...createMemoryIntentStore(nowMs), [method]: failing[method] }
    const { create, stored, clock } = createUseCase(['gggggg1'], { intents })
    const startMs = clock.nowMs
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect(stored).toEqual([])
    expect(clock.nowMs - startMs).toBe(CREATE_MS_MAX)
  },
)

const rejected = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))

describe('while the system clock is set back by an hour each time a create waits', () => {
  const HOUR_MS = 3_600_000

  function createWithClockSetBack(change: Partial<CreateDeps>) {
    const setup = createUseCase(['gggggg1', 'gggggg2'], {
      ...change,
      random: () => 1,
      pause(ms) {
        if (setup.pauses.push(ms) > PAUSES_MAX) throw new Error('the create never completes')
        setup.clock.nowMs -= HOUR_MS
        setup.clock.monotonicMs += ms
        return Promise.resolve()
      },
    })
    return setup
  }

  test('a claim that keeps failing stops at its deadline', async () => {
    const links = { insertIfAbsent: unknown, readSerial: unknown }
    const { create, clock } = createWithClockSetBack({ links })
    expect(await create()).toEqual({ kind: 'outcome-unknown' })
    expect(clock.monotonicMs).toBe(CREATE_MS_MAX)
  })

  test.each(['readSerial', 'insertIfAbsent'] as const)(
    'an intent whose %s keeps failing stops at its deadline',
    async (method) => {
      const failing = { readSerial: unknown, insertIfAbsent: unknown }
      const intents = { ...createMemoryIntentStore(() => 0), [method]: failing[method] }
      const { create, clock } = createWithClockSetBack({ intents })
      expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
      expect(clock.monotonicMs).toBe(CREATE_MS_MAX)
    },
  )

  test('a move of an intent stops at its deadline if it keeps failing', async () => {
    const intents = { ...createMemoryIntentStore(() => 0), move: unknown }
    const { create, clock } = createWithClockSetBack({ intents })
    await create({ alias: 'gggggg1' })
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect(clock.monotonicMs).toBe(CREATE_MS_MAX)
  })

  test('a claim that succeeds after retries has the dates of the system clock', async () => {
    let failures = 3
    const links = createMemoryLinkStore()
    const insertIfAbsent = links.insertIfAbsent.bind(links)
    links.insertIfAbsent = (link) => (failures-- > 0 ? unknown() : insertIfAbsent(link))
    const { create, clock } = createWithClockSetBack({ links })
    const { nowMs } = clock
    expect(await create({ ttlDays: 1 })).toMatchObject({
      kind: 'created',
      link: { createdAtMs: nowMs, expiresAtMs: nowMs + DAY_MS },
    })
  })
})

test('a call that the store rejects is not retried', async () => {
  const rejects = () => Promise.reject(new StoreError('no majority', { outcome: 'not-done' }))
  const intents = { ...createMemoryIntentStore(() => 0), readSerial: rejects }
  const unread = createUseCase(['gggggg1'], { intents })
  expect(await unread.create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
  const links = { insertIfAbsent: unknown, readSerial: rejects }
  const unclaimed = createUseCase(['gggggg1'], { links })
  expect(await unclaimed.create({ idempotencyKey: 'k' })).toEqual({ kind: 'outcome-unknown' })
  expect([...unread.pauses, ...unclaimed.pauses]).toEqual([])
})

test('a defect of the store is thrown and not reported as an outage', async () => {
  const insertIfAbsent = () => Promise.reject(new TypeError('a defect'))
  const links = { insertIfAbsent, readSerial: () => Promise.resolve(undefined) }
  const { create } = createUseCase(['gggggg1'], { links })
  await expect(create()).rejects.toThrow('a defect')
})

test('a link that the store rejects is reported as not stored', async () => {
  const rejectInsert = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))
  const links = { ...createMemoryLinkStore(), insertIfAbsent: rejectInsert }
  const { create, pauses, metrics } = createUseCase(['gggggg1', 'gggggg2'], { links })
  expect(await create()).toEqual({ kind: 'not-created' })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
  expect(pauses).toEqual([])
  const { values } = await metrics.claims.get()
  expect(values).toEqual([{ labels: { result: 'not-done' }, value: 2 }])
})

test('an intent that the store rejects is not retried', async () => {
  let inserts = 0
  const insertIfAbsent = () => {
    inserts++
    return Promise.reject(new StoreError('full', { outcome: 'not-done' }))
  }
  const intents = { ...createMemoryIntentStore(() => 0), insertIfAbsent }
  const { create, pauses } = createUseCase(['gggggg1'], { intents })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
  expect([inserts, pauses]).toEqual([1, []])
})

describe('a move of an intent whose code was taken', () => {
  /** A creator whose first code is taken by an alias, and whose store has another `move`. */
  async function creatorWithMove(move: (real: IntentStore) => IntentStore['move']) {
    const intents = createMemoryIntentStore(() => 0)
    const calls: string[] = []
    const real = { ...intents }
    const replaced = move(real)
    const setup = createUseCase(['gggggg1', 'gggggg2', 'gggggg3'], {
      intents: {
        ...intents,
        move(change) {
          calls.push(change.to)
          return replaced(change)
        },
      },
    })
    await setup.create({ alias: 'gggggg1' })
    return { ...setup, calls, intents }
  }

  test('is retried after a failure until it succeeds', async () => {
    let failures = 2
    const { create, calls } = await creatorWithMove(
      (real) => (change) => (failures-- > 0 ? unknown() : real.move(change)),
    )
    const outcome = await create({ idempotencyKey: 'k' })
    expect(outcome).toMatchObject({ kind: 'created', link: { code: 'gggggg2' } })
    expect(calls).toEqual(['gggggg2', 'gggggg2', 'gggggg2'])
  })

  test('that a failed call applied is found by a read and not retried', async () => {
    const { create, calls } = await creatorWithMove(
      (real) => (change) => real.move(change).then(() => unknown()),
    )
    const outcome = await create({ idempotencyKey: 'k' })
    expect(outcome).toMatchObject({ kind: 'created', link: { code: 'gggggg2' } })
    expect(calls).toHaveLength(1)
  })

  test('that the store rejects is not retried', async () => {
    const { create, calls, pauses } = await creatorWithMove(() => rejected)
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect([calls.length, pauses]).toEqual([1, []])
  })

  test('whose intent has expired is not retried', async () => {
    const { create, pauses } = await creatorWithMove(() => unknown)
    const readSerial = () => Promise.resolve(undefined)
    const setup = createUseCase(['gggggg1', 'gggggg2'], {
      intents: { ...createMemoryIntentStore(() => 0), move: unknown, readSerial },
    })
    await setup.create({ alias: 'gggggg1' })
    expect(await setup.create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect([...setup.pauses, ...pauses]).toEqual([])
    expect(await create({ alias: 'other' })).toMatchObject({ kind: 'created' })
  })

  test('that returns the intent of another body stores no link of this body', async () => {
    const { create, links } = await creatorWithMove((real) => async (change) => {
      const moved = await real.move(change)
      return moved && { ...moved, bodyHash: 'another' }
    })
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect(await links.find('gggggg2')).toBeUndefined()
  })
})

test('a create with a key also stops after ten taken codes in a row', async () => {
  const codes = Array.from({ length: 12 }, (_, i) => `gggggg${i.toString(36)}`)
  const { create, codes: left } = createUseCase([...codes])
  for (const alias of codes.slice(0, 10)) await create({ alias })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
  expect(left).toEqual(codes.slice(11))
})

test('a create does not try an eleventh code', async () => {
  const codes = Array.from({ length: 11 }, (_, i) => `gggggg${i.toString(36)}`)
  const { create, codes: left } = createUseCase([...codes])
  for (const alias of codes.slice(0, 10)) await create({ alias })
  expect(await create()).toEqual({ kind: 'not-created' })
  expect(left).toEqual(codes.slice(10))
})

test('an intent that was stored by a failed call is not written twice', async () => {
  const real = createMemoryIntentStore(() => 0)
  let calls = 0
  const insertIfAbsent = (intent: Intent) => {
    calls++
    return real.insertIfAbsent(intent).then(() => unknown())
  }
  const { create, metrics } = createUseCase(['gggggg1'], { intents: { ...real, insertIfAbsent } })
  expect(await create({ idempotencyKey: 'k' })).toMatchObject({ kind: 'created', replayed: false })
  expect(calls).toBe(1)
  expect((await metrics.claims.get()).values).toEqual([{ labels: { result: 'claimed' }, value: 1 }])
})

test('a claim that succeeds on a retry is counted as resolved and as claimed', async () => {
  const links = createMemoryLinkStore()
  const insertIfAbsent = links.insertIfAbsent.bind(links)
  const failures = [unknown, rejected]
  links.insertIfAbsent = (link) => failures.shift()?.() ?? insertIfAbsent(link)
  const { create, metrics, pauses } = createUseCase(['gggggg1'], { links })
  expect(await create()).toMatchObject({ kind: 'created' })
  expect(pauses).toHaveLength(2)
  const { values } = await metrics.claims.get()
  expect(values.map(({ labels, value }) => [labels.result, value]).sort()).toEqual([
    ['claimed', 1],
    ['unknown-resolved', 1],
  ])
})

test('a claim whose deadline has passed is not retried', async () => {
  const links = createMemoryLinkStore()
  let writes = 0
  links.insertIfAbsent = () => {
    writes++
    return unknown()
  }
  const { create, clock } = createUseCase(['gggggg1'], {
    links,
    pause() {
      clock.monotonicMs += CREATE_MS_MAX
      return Promise.resolve()
    },
  })
  expect(await create()).toEqual({ kind: 'outcome-unknown' })
  expect(writes).toBe(1)
})
