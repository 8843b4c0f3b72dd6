// Creates whose codes are taken or absent: how long they try, and what they report.
import { describe, expect, test } from '@jest/globals'
import { createUseCase, unknown } from '../../test/kit/links/creator.ts'
import type { Intent } from '../links/intent-store.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createMemoryIntentStore } from '../../test/kit/stores/memory-intent-store.ts'
import { createMemoryLinkStore } from '../../test/kit/stores/memory-link-store.ts'
import type { SuppliedCode } from './code-supply.ts'
import { CREATE_MS_MAX } from './create-link.ts'

const DAY_MS = 86_400_000
const rejected = () => Promise.reject(new StoreError('full', { outcome: 'not-done' }))

/** A supply that returns these results, one after the other. */
const supplyOf = (...results: SuppliedCode[]) => ({
  take: (): SuppliedCode => results.shift() ?? { kind: 'pool-empty' },
})
const codeOf = (code: string): SuppliedCode => ({ kind: 'code', code })

describe('a supply without a code', () => {
  test.each([undefined, 'k'])('because the store is unavailable, with the key %s', async (key) => {
    const { create } = createUseCase([], { supply: supplyOf({ kind: 'store-unavailable' }) })
    expect(await create({ idempotencyKey: key })).toEqual({ kind: 'not-created' })
  })

  test.each([
    ['store-unavailable', 'not-created'],
    ['pool-empty', 'pool-empty'],
  ] as const)('after a taken code, because of %s, is reported as %s', async (kind, expected) => {
    for (const idempotencyKey of [undefined, 'k']) {
      const supply = supplyOf(codeOf('gggggg1'), { kind })
      const { create } = createUseCase([], { supply })
      await create({ alias: 'gggggg1' })
      expect(await create({ idempotencyKey })).toEqual({ kind: expected })
    }
  })
})

describe('a create whose first code is taken', () => {
  /** Creates with a store that responds after this time. */
  async function createSlowly(ms: number, idempotencyKey: string | undefined) {
    const links = createMemoryLinkStore()
    const setup = createUseCase(['gggggg1', 'gggggg2'], { links })
    await setup.create({ alias: 'gggggg1' })
    const insertIfAbsent = links.insertIfAbsent.bind(links)
    links.insertIfAbsent = (link) => {
      setup.clock.monotonicMs += ms
      return insertIfAbsent(link)
    }
    return { outcome: await setup.create({ idempotencyKey }), links: setup.links }
  }

  test.each([undefined, 'k'])('tries another before its deadline, with the key %s', async (key) => {
    const { outcome } = await createSlowly(CREATE_MS_MAX - 1, key)
    expect(outcome).toMatchObject({ kind: 'created', link: { code: 'gggggg2' } })
  })

  test.each([undefined, 'k'])('tries no other at its deadline, with the key %s', async (key) => {
    const { outcome, links } = await createSlowly(CREATE_MS_MAX, key)
    expect(outcome).toEqual({ kind: 'not-created' })
    expect(await links.find('gggggg2')).toBeUndefined()
  })
})

describe('an intent', () => {
  test('whose insert has an unknown outcome and that cannot be read stores no link', async () => {
    const intents = createMemoryIntentStore(() => 0)
    let reads = 0
    const readSerial = (keyHash: string) =>
      reads++ === 0 ? intents.readSerial(keyHash) : rejected()
    const { create, stored, pauses } = createUseCase(['gggggg1'], {
      intents: { ...intents, insertIfAbsent: unknown, readSerial },
    })
    expect(await create({ idempotencyKey: 'k' })).toEqual({ kind: 'not-created' })
    expect([stored, pauses]).toEqual([[], []])
  })

  test.each([
    [CREATE_MS_MAX - 1, { kind: 'created' }],
    [CREATE_MS_MAX, { kind: 'not-created' }],
  ])('that is stored after %d ms has the outcome %j', async (ms, expected) => {
    const intents = createMemoryIntentStore(() => 0)
    const setup = createUseCase(['gggggg1'], {
      intents: {
        ...intents,
        insertIfAbsent(intent: Intent) {
          setup.clock.monotonicMs += ms
          return intents.insertIfAbsent(intent)
        },
      },
    })
    expect(await setup.create({ idempotencyKey: 'k' })).toMatchObject(expected)
  })
})

describe('a replay after the expiry of its link', () => {
  const request = { idempotencyKey: 'k', ttlDays: 1 }

  /** A create whose intent was stored, but not its link; then the link expires. */
  async function setUpExpired(body: { readonly alias?: string | undefined } = {}) {
    const links = createMemoryLinkStore()
    const insertIfAbsent = links.insertIfAbsent.bind(links)
    links.insertIfAbsent = rejected
    const setup = createUseCase(['gggggg1', 'gggggg2'], { links })
    expect(await setup.create({ ...request, ...body })).toEqual({ kind: 'not-created' })
    links.insertIfAbsent = insertIfAbsent
    return { ...setup, store: links, expire: () => (setup.clock.nowMs += DAY_MS) }
  }

  test('stores no link if an alias has taken the code of its intent', async () => {
    const { create, store, expire } = await setUpExpired()
    await create({ alias: 'gggggg1' })
    expire()
    expect(await create(request)).toEqual({ kind: 'not-created' })
    expect(await store.find('gggggg2')).toBeUndefined()
  })

  test.each([undefined, 'mine'])(
    'reports no taken alias if the store cannot read the code, with the alias %s',
    async (alias) => {
      const { create, store, expire } = await setUpExpired({ alias })
      expire()
      store.readSerial = rejected
      expect(await create({ ...request, alias })).toEqual({ kind: 'not-created' })
    },
  )
})

test('members that a later version adds are compared in any order, and only if set', async () => {
  const { create } = createUseCase(['gggggg1'])
  const first = await create({ idempotencyKey: 'k', ...{ note: 'x', group: 'y' } })
  const sameBodies = [
    { note: 'x', group: 'y' },
    { group: 'y', note: 'x' },
    { group: 'y', note: 'x', unset: undefined },
  ]
  for (const added of sameBodies) {
    expect(await create({ idempotencyKey: 'k', ...added })).toEqual({ ...first, replayed: true })
  }
  for (const added of [{ note: 'y', group: 'x' }, { note: 'x' }, {}]) {
    expect(await create({ idempotencyKey: 'k', ...added })).toEqual({ kind: 'key-reused' })
  }
})
