// Creating links over stores in memory: what is stored, what is told, and when. What faults and
// concurrency can do to it is explored in test/model.
import { describe, expect, test } from '@jest/globals'
import { INTENT_TTL_MS } from '../links/intent-store.ts'
import { createMetrics } from '../process/metrics.ts'
import { StoreError } from '../process/store-error.ts'
import { createMemoryIntentStore } from '../stores/memory/intent-store.ts'
import { createMemoryLinkStore } from '../stores/memory/link-store.ts'
import type { SuppliedCode } from './code-supply.ts'
import { CREATE_MS_MAX, createLink, type CreateDeps, type CreateRequest } from './create-link.ts'

const DAY_MS = 86_400_000

/** A creator with `codes` in its pool; `change` bends what it is given. */
function creator(codes: string[] = [], change: Partial<CreateDeps> = {}) {
  const clock = { nowMs: 1_790_000_000_000 }
  const nowMs = () => clock.nowMs
  const links = createMemoryLinkStore()
  const intents = createMemoryIntentStore(nowMs)
  const stored: string[] = []
  const metrics = createMetrics()
  const pauses: number[] = []
  const take = (): Promise<SuppliedCode> => {
    const code = codes.shift()
    return Promise.resolve(code === undefined ? { kind: 'pool-empty' } : { kind: 'code', code })
  }
  const deps: CreateDeps = {
    links,
    intents,
    nowMs,
    metrics,
    supply: { take },
    onStored(code) {
      stored.push(code)
      return undefined
    },
    pause(ms) {
      pauses.push(ms)
      clock.nowMs += ms
      return Promise.resolve()
    },
    ...change,
  }
  const create = (request: Partial<CreateRequest> = {}) =>
    createLink(deps, {
      longUrl: 'https://example.com/',
      alias: undefined,
      ttlDays: undefined,
      idempotencyKey: undefined,
      ...request,
    })
  return { clock, links, intents, stored, create, codes, metrics, pauses }
}

const unknown = () => Promise.reject(new StoreError('away', { outcome: 'unknown' }))

test('a link is stored as it was asked for, and its code told before the answer', async () => {
  const { clock, links, stored, create } = creator(['gggggg1'])
  const outcome = await create({ ttlDays: 2 })
  const link = {
    code: 'gggggg1',
    longUrl: 'https://example.com/',
    createdAtMs: clock.nowMs,
    expiresAtMs: clock.nowMs + 2 * DAY_MS,
    creatorId: null,
    writerId: expect.any(String),
    disabledAtMs: null,
    deletedAtMs: null,
  }
  expect(outcome).toEqual({ kind: 'created', link, replayed: false })
  expect(await links.find('gggggg1')).toEqual(link)
  expect(stored).toEqual(['gggggg1'])
})

test.each([undefined, 'k'])(
  'the answer waits for what was told, key %s',
  async (idempotencyKey) => {
    const done = Promise.withResolvers<undefined>()
    const told: string[] = []
    const { create } = creator(['gggggg1'], {
      onStored(code) {
        told.push(code)
        return done.promise
      },
    })
    let isAnswered = false
    const creating = create({ idempotencyKey }).finally(() => (isAnswered = true))
    while (told.length === 0) await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(isAnswered).toBe(false)
    done.resolve(undefined)
    expect(await creating).toMatchObject({ kind: 'created' })
  },
)

test('two requests for one target are two links', async () => {
  const { create } = creator(['gggggg1', 'gggggg2'])
  const outcomes = [await create(), await create()]
  expect(outcomes).toMatchObject([{ link: { code: 'gggggg1' } }, { link: { code: 'gggggg2' } }])
  const writers = outcomes.map((outcome) => outcome.kind === 'created' && outcome.link.writerId)
  expect(new Set(writers).size).toBe(2)
})

test('a taken alias is told, takes no code, and stores nothing', async () => {
  const { create, links, stored, codes } = creator(['gggggg1'])
  await create({ alias: 'mine' })
  const outcome = await create({ alias: 'mine', longUrl: 'https://example.org/' })
  expect(outcome).toEqual({ kind: 'alias-taken' })
  expect((await links.find('mine'))?.longUrl).toBe('https://example.com/')
  expect(stored).toEqual(['mine'])
  expect(codes).toEqual(['gggggg1'])
})

test('a pool’s code that is somebody’s alias is passed over', async () => {
  const { create } = creator(['gggggg1', 'gggggg2'])
  await create({ alias: 'gggggg1' })
  expect(await create()).toMatchObject({ kind: 'created', link: { code: 'gggggg2' } })
})

test('with a key, too, and the repeat says the code that came of it', async () => {
  const { create, codes } = creator(['gggggg1', 'gggggg2'])
  await create({ alias: 'gggggg1' })
  const first = await create({ idempotencyKey: 'k' })
  expect(first).toMatchObject({ kind: 'created', link: { code: 'gggggg2' }, replayed: false })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ ...first, replayed: true })
  expect(codes).toEqual([])
})

test('ten taken codes in a row end the search', async () => {
  const codes = Array.from({ length: 11 }, (_, i) => `gggggg${i.toString(36)}`)
  const { create } = creator([...codes])
  for (const alias of codes) await create({ alias })
  expect(await create()).toEqual({ kind: 'store-unavailable' })
})

test('an empty pool is told; aliases go on', async () => {
  const { create } = creator()
  expect(await create()).toEqual({ kind: 'pool-empty' })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'pool-empty' })
  expect(await create({ alias: 'mine' })).toMatchObject({ kind: 'created' })
})

test('a repeat answers the same, with its first times, also from an empty pool', async () => {
  const { create, clock } = creator(['gggggg1'])
  const first = await create({ idempotencyKey: 'k', ttlDays: 1 })
  clock.nowMs += DAY_MS - 1
  expect(await create({ idempotencyKey: 'k', ttlDays: 1 })).toEqual({ ...first, replayed: true })
})

test('a repeat answers the same after the link was deleted', async () => {
  const { create, links, clock } = creator(['gggggg1'])
  const first = await create({ idempotencyKey: 'k' })
  await links.erase({ code: 'gggggg1', deletedAtMs: clock.nowMs })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ ...first, replayed: true })
  expect((await links.find('gggggg1'))?.longUrl).toBeNull()
})

test('an intent is forgotten after its time, and the key is free', async () => {
  const { create, clock } = creator(['gggggg1', 'gggggg2'])
  await create({ idempotencyKey: 'k' })
  clock.nowMs += INTENT_TTL_MS
  const next = await create({ idempotencyKey: 'k', longUrl: 'https://example.org/' })
  expect(next).toMatchObject({ kind: 'created', link: { code: 'gggggg2' }, replayed: false })
})

test.each([
  ['target', { longUrl: 'https://example.com' }],
  ['alias', { alias: 'mine' }],
  ['life', { ttlDays: 1 }],
])('a key with another %s is another body, and stores nothing', async (_, change) => {
  const { create, links, stored } = creator(['gggggg1', 'gggggg2'])
  await create({ idempotencyKey: 'k' })
  expect(await create({ idempotencyKey: 'k', ...change })).toEqual({ kind: 'key-reused' })
  expect(stored).toEqual(['gggggg1'])
  expect(await links.find('mine')).toBeUndefined()
})

test('the key is stored as a hash only', async () => {
  const kept: string[] = []
  const { create, intents } = creator(['gggggg1'], {})
  const insertIfAbsent = intents.insertIfAbsent.bind(intents)
  intents.insertIfAbsent = (intent) => {
    kept.push(JSON.stringify(intent))
    return insertIfAbsent(intent)
  }
  await create({ idempotencyKey: 'my own secret' })
  expect(kept).toHaveLength(1)
  expect(kept.join()).not.toMatch(/my own secret|example\.com/)
})

test('a store that stays away is given up at the deadline, and its code told', async () => {
  const links = { insertIfAbsent: unknown, readSerial: unknown }
  const { create, stored, clock, pauses, metrics } = creator(['gggggg1'], {
    links,
    random: () => 1,
  })
  const begunMs = clock.nowMs
  expect(await create()).toEqual({ kind: 'outcome-unknown' })
  expect(stored).toEqual(['gggggg1'])
  expect(clock.nowMs - begunMs).toBe(CREATE_MS_MAX)
  expect(Math.max(...pauses)).toBe(320)
  expect(pauses.length).toBeLessThan(30)
  const { values } = await metrics.claims.get()
  expect(values).toContainEqual({ labels: { outcome: 'unknown' }, value: 1 })
})

test.each(['readSerial', 'insertIfAbsent'] as const)(
  'intents whose %s keeps failing end in 503 at the deadline',
  async (method) => {
    const { nowMs } = { nowMs: () => 0 }
    const failing = { readSerial: unknown, insertIfAbsent: unknown }
    const intents = { ...createMemoryIntentStore(nowMs), [method]: failing[method] }
    const { create, stored, clock } = creator(['gggggg1'], { intents })
    const begunMs = clock.nowMs
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'store-unavailable' })
    expect(stored).toEqual([])
    expect(clock.nowMs - begunMs).toBe(CREATE_MS_MAX)
  },
)

test('a store that is known to be unavailable is not retried', async () => {
  const rejects = () => Promise.reject(new StoreError('no majority', { outcome: 'not-done' }))
  const intents = { ...createMemoryIntentStore(() => 0), readSerial: rejects }
  const early = creator(['gggggg1'], { intents })
  expect(await early.create({ idempotencyKey: 'k' })).toEqual({ kind: 'store-unavailable' })
  const links = { insertIfAbsent: unknown, readSerial: rejects }
  const late = creator(['gggggg1'], { links })
  expect(await late.create({ idempotencyKey: 'k' })).toEqual({ kind: 'outcome-unknown' })
  expect([...early.pauses, ...late.pauses]).toEqual([])
})

test('a defect of the store fails loudly, and is no outage', async () => {
  const insertIfAbsent = () => Promise.reject(new TypeError('a defect'))
  const links = { insertIfAbsent, readSerial: () => Promise.resolve(undefined) }
  const { create } = creator(['gggggg1'], { links })
  await expect(create()).rejects.toThrow('a defect')
})

test('of a store that refuses a link it is known that none was stored', async () => {
  const refused = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))
  const links = { ...createMemoryLinkStore(), insertIfAbsent: refused }
  const { create, pauses, metrics } = creator(['gggggg1', 'gggggg2'], { links })
  expect(await create()).toEqual({ kind: 'store-unavailable' })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'store-unavailable' })
  expect(pauses).toEqual([])
  const { values } = await metrics.claims.get()
  expect(values).toEqual([{ labels: { outcome: 'not-done' }, value: 2 }])
})

test('a store that refuses an intent is not asked again', async () => {
  let asked = 0
  const insertIfAbsent = () => {
    asked++
    return Promise.reject(new StoreError('full', { outcome: 'not-done' }))
  }
  const intents = { ...createMemoryIntentStore(() => 0), insertIfAbsent }
  const { create, pauses } = creator(['gggggg1'], { intents })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'store-unavailable' })
  expect([asked, pauses]).toEqual([1, []])
})

describe('a repeat after the life of its link, within that of its intent', () => {
  const request = { idempotencyKey: 'k', ttlDays: 1 }

  test('says a link again that was stored', async () => {
    const { create, clock } = creator(['gggggg1'])
    const first = await create(request)
    clock.nowMs += DAY_MS
    expect(await create(request)).toEqual({ ...first, replayed: true })
  })

  test('stores none that would be dead, and one when the key is free again', async () => {
    const links = createMemoryLinkStore()
    const refused = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))
    const insertIfAbsent = links.insertIfAbsent.bind(links)
    links.insertIfAbsent = refused
    const { create, clock } = creator(['gggggg1', 'gggggg2'], { links })
    expect(await create(request)).toEqual({ kind: 'store-unavailable' })
    links.insertIfAbsent = insertIfAbsent
    clock.nowMs += DAY_MS
    expect(await create(request)).toEqual({ kind: 'store-unavailable' })
    expect(await links.find('gggggg1')).toBeUndefined()
    clock.nowMs += INTENT_TTL_MS - DAY_MS
    const link = { code: 'gggggg2', expiresAtMs: clock.nowMs + DAY_MS }
    expect(await create(request)).toMatchObject({ kind: 'created', link, replayed: false })
  })

  test('is told that the alias is taken', async () => {
    const { create, clock } = creator()
    await create({ alias: 'mine' })
    expect(await create({ ...request, alias: 'mine' })).toEqual({ kind: 'alias-taken' })
    clock.nowMs += DAY_MS
    expect(await create({ ...request, alias: 'mine' })).toEqual({ kind: 'alias-taken' })
  })
})
