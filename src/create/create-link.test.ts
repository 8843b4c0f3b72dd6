// Creating links over stores in memory: what is stored, what is reported, and when. test/model
// explores faults and concurrency.
import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createUseCase } from '../../test/kit/links/creator.ts'
import { INTENT_TTL_MS } from '../links/intent-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'

const DAY_MS = 86_400_000

test('a link is stored as requested, and caches are invalidated before the response', async () => {
  const { clock, links, stored, create } = createUseCase(['gggggg1'])
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
  'the response waits until caches are invalidated, with the key %s',
  async (idempotencyKey) => {
    const done = Promise.withResolvers<undefined>()
    const invalidatedCodes: string[] = []
    const { create } = createUseCase(['gggggg1'], {
      invalidateCaches(code) {
        invalidatedCodes.push(code)
        return done.promise
      },
    })
    let isCreated = false
    const creating = create({ idempotencyKey }).finally(() => (isCreated = true))
    while (invalidatedCodes.length === 0) await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(isCreated).toBe(false)
    done.resolve(undefined)
    expect(await creating).toMatchObject({ kind: 'created' })
  },
)

test.each([undefined, 'k'])('a link has its creator, with the key %s', async (idempotencyKey) => {
  const { links, create } = createUseCase(['gggggg1'])
  const creatorId = 2n ** 63n - 1n
  const outcome = await create({ creatorId, idempotencyKey })
  expect(outcome).toMatchObject({ kind: 'created', link: { creatorId } })
  expect(await links.find('gggggg1')).toMatchObject({ creatorId })
})

test('two requests for one target create two links', async () => {
  const { create } = createUseCase(['gggggg1', 'gggggg2'])
  const outcomes = [await create(), await create()]
  expect(outcomes).toMatchObject([{ link: { code: 'gggggg1' } }, { link: { code: 'gggggg2' } }])
  const writers = outcomes.map((outcome) => outcome.kind === 'created' && outcome.link.writerId)
  expect(new Set(writers).size).toBe(2)
})

test('a taken alias is reported, takes no code, and stores nothing', async () => {
  const { create, links, stored, codes } = createUseCase(['gggggg1'])
  await create({ alias: 'mine' })
  const outcome = await create({ alias: 'mine', longUrl: 'https://example.org/' })
  expect(outcome).toEqual({ kind: 'alias-taken' })
  expect((await links.find('mine'))?.longUrl).toBe('https://example.com/')
  expect(stored).toEqual(['mine'])
  expect(codes).toEqual(['gggggg1'])
})

test('a code of the pool that is already an alias is skipped', async () => {
  const { create } = createUseCase(['gggggg1', 'gggggg2'])
  await create({ alias: 'gggggg1' })
  expect(await create()).toMatchObject({ kind: 'created', link: { code: 'gggggg2' } })
})

test('a create with a key skips codes that are aliases; a retry returns its code', async () => {
  const { create, codes } = createUseCase(['gggggg1', 'gggggg2'])
  await create({ alias: 'gggggg1' })
  const first = await create({ idempotencyKey: 'k' })
  expect(first).toMatchObject({ kind: 'created', link: { code: 'gggggg2' }, replayed: false })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ ...first, replayed: true })
  expect(codes).toEqual([])
})

test('a create stops after ten taken codes in a row', async () => {
  const codes = Array.from({ length: 11 }, (_, i) => `gggggg${i.toString(36)}`)
  const { create } = createUseCase([...codes])
  for (const alias of codes) await create({ alias })
  expect(await create()).toEqual({ kind: 'not-created' })
})

test('an empty pool is reported; aliases still work', async () => {
  const { create } = createUseCase()
  expect(await create()).toEqual({ kind: 'pool-empty' })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'pool-empty' })
  expect(await create({ alias: 'mine' })).toMatchObject({ kind: 'created' })
})

test('a retry returns the first result with its times, even while the pool is empty', async () => {
  const { create, clock } = createUseCase(['gggggg1'])
  const first = await create({ idempotencyKey: 'k', ttlDays: 1 })
  clock.nowMs += DAY_MS - 1
  expect(await create({ idempotencyKey: 'k', ttlDays: 1 })).toEqual({ ...first, replayed: true })
})

test('a retry returns the first result after the link was deleted', async () => {
  const { create, links, clock } = createUseCase(['gggggg1'])
  const first = await create({ idempotencyKey: 'k' })
  await links.erase({ code: 'gggggg1', deletedAtMs: clock.nowMs })
  expect(await create({ idempotencyKey: 'k' })).toEqual({ ...first, replayed: true })
  expect((await links.find('gggggg1'))?.longUrl).toBeNull()
})

test('an intent expires, and then its key is free', async () => {
  const { create, clock } = createUseCase(['gggggg1', 'gggggg2'])
  await create({ idempotencyKey: 'k' })
  clock.nowMs += INTENT_TTL_MS
  const next = await create({ idempotencyKey: 'k', longUrl: 'https://example.org/' })
  expect(next).toMatchObject({ kind: 'created', link: { code: 'gggggg2' }, replayed: false })
})

test.each([
  ['target', { longUrl: 'https://example.com' }],
  ['alias', { alias: 'mine' }],
  ['lifetime', { ttlDays: 1 }],
  ['member that a later version adds', { note: 'x' }],
])('a key that is reused with another %s is rejected, and stores nothing', async (_, change) => {
  const { create, links, stored } = createUseCase(['gggggg1', 'gggggg2'])
  await create({ idempotencyKey: 'k' })
  expect(await create({ idempotencyKey: 'k', ...change })).toEqual({ kind: 'key-reused' })
  expect(stored).toEqual(['gggggg1'])
  expect(await links.find('mine')).toBeUndefined()
})

test('each creator has its own keys; clients without an API key share one set', async () => {
  const clients = [null, 1n, 2n, 11n]
  const { create } = createUseCase(['gggggg1', 'gggggg2', 'gggggg3', 'gggggg4'])
  const first = []
  for (const creatorId of clients) {
    const longUrl = `https://example.com/${creatorId}`
    const outcome = await create({ creatorId, idempotencyKey: 'k', longUrl })
    expect(outcome).toMatchObject({
      kind: 'created',
      replayed: false,
      link: { creatorId, longUrl },
    })
    first.push({ outcome, request: { creatorId, idempotencyKey: 'k', longUrl } })
  }
  for (const { outcome, request } of first) {
    expect(await create(request)).toEqual({ ...outcome, replayed: true })
  }
  expect(await create({ creatorId: 1n, idempotencyKey: 'k' })).toEqual({ kind: 'key-reused' })
})

test('a replay after the expiry of the link returns its creator', async () => {
  const { create, clock } = createUseCase(['gggggg1'])
  const request = { creatorId: 7n, idempotencyKey: 'k', ttlDays: 1 }
  const first = await create(request)
  clock.nowMs += DAY_MS
  expect(await create(request)).toEqual({ ...first, replayed: true })
})

test('without a creator, the stored hashes are those of earlier releases', async () => {
  const { create, intents } = createUseCase(['gggggg1'])
  await create({ idempotencyKey: 'k' })
  const sha256 = (input: string) => createHash('sha256').update(input).digest('hex')
  expect(await intents.readSerial(sha256('k'))).toMatchObject({
    bodyHash: sha256('["https://example.com/",null,null]'),
  })
})

test('the key is stored as a hash only', async () => {
  const storedIntents: string[] = []
  const { create, intents } = createUseCase(['gggggg1'], {})
  const insertIfAbsent = intents.insertIfAbsent.bind(intents)
  intents.insertIfAbsent = (intent) => {
    storedIntents.push(JSON.stringify(intent))
    return insertIfAbsent(intent)
  }
  await create({ idempotencyKey: 'my own secret' })
  expect(storedIntents).toHaveLength(1)
  expect(storedIntents.join()).not.toMatch(/my own secret|example\.com/)
})

describe('a retry after the link has expired, but not its intent', () => {
  const request = { idempotencyKey: 'k', ttlDays: 1 }

  test('returns the link if it was stored', async () => {
    const { create, clock } = createUseCase(['gggggg1'])
    const first = await create(request)
    clock.nowMs += DAY_MS
    expect(await create(request)).toEqual({ ...first, replayed: true })
  })

  test('stores no link that would be expired, but a new link once the key is free', async () => {
    const links = createMemoryLinkStore()
    const rejectInsert = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))
    const insertIfAbsent = links.insertIfAbsent.bind(links)
    links.insertIfAbsent = rejectInsert
    const { create, clock } = createUseCase(['gggggg1', 'gggggg2'], { links })
    expect(await create(request)).toEqual({ kind: 'not-created' })
    links.insertIfAbsent = insertIfAbsent
    clock.nowMs += DAY_MS
    expect(await create(request)).toEqual({ kind: 'not-created' })
    expect(await links.find('gggggg1')).toBeUndefined()
    clock.nowMs += INTENT_TTL_MS - DAY_MS
    const link = { code: 'gggggg2', expiresAtMs: clock.nowMs + DAY_MS }
    expect(await create(request)).toMatchObject({ kind: 'created', link, replayed: false })
  })

  test('reports that the alias is taken', async () => {
    const { create, clock } = createUseCase()
    await create({ alias: 'mine' })
    expect(await create({ ...request, alias: 'mine' })).toEqual({ kind: 'alias-taken' })
    clock.nowMs += DAY_MS
    expect(await create({ ...request, alias: 'mine' })).toEqual({ kind: 'alias-taken' })
  })
})
