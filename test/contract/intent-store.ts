// The contract of an intent store: the guarantees of src/links/intent-store.ts as tests.
// Independent of the stores, which intent-store.test.ts lists.
import { describe, expect, test } from '@jest/globals'
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../src/links/intent-store.ts'
import type { SweptStore } from '../../src/links/link-store.ts'
import { openCase } from './open-case.ts'

/** An open store. */
interface OpenedIntentStore {
  readonly intents: IntentStore
  /** Sets the clock by which intents expire; absent if the store has its own clock. */
  readonly setNowMs?: (nowMs: number) => void
  /** The same store if intents do not expire by themselves. */
  readonly swept?: SweptStore
  readonly close: () => Promise<void>
}

/** A store that the contract is run on. */
export interface IntentStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedIntentStore>
}

type Opened = () => OpenedIntentStore

/** When the fake clock of a store starts. */
export const START_MS = 1_790_000_000_000

/** Defines the tests of one store. */
export function defineIntentStoreTests({ name, open }: IntentStoreCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    defineInsertTests(opened)
    defineMoveTests(opened)
    defineAgeTests(opened)
  })
}

function sampleIntent(change: Partial<Intent> = {}): Intent {
  return {
    keyHash: crypto.randomUUID(),
    bodyHash: crypto.randomUUID(),
    code: 'abcdefg',
    writerId: crypto.randomUUID(),
    createdAtMs: START_MS,
    expiresAtMs: START_MS + 86_400_000,
    ...change,
  }
}

async function insertSample(opened: Opened, change: Partial<Intent> = {}): Promise<Intent> {
  const intent = sampleIntent(change)
  expect(await opened().intents.insertIfAbsent(intent)).toEqual(intent)
  return intent
}

function defineInsertTests(opened: Opened): void {
  test('insertIfAbsent() stores every field, with and without an expiry', async () => {
    for (const expiresAtMs of [null, START_MS + 1]) {
      const intent = await insertSample(opened, { expiresAtMs })
      expect(await opened().intents.readSerial(intent.keyHash)).toEqual(intent)
    }
  })

  test('a key without an intent reads as undefined', async () => {
    expect(await opened().intents.readSerial(crypto.randomUUID())).toBeUndefined()
  })

  test('insertIfAbsent() of a used key returns the stored intent and changes nothing', async () => {
    const first = await insertSample(opened)
    const second = sampleIntent({ keyHash: first.keyHash, code: 'other', expiresAtMs: null })
    expect(await opened().intents.insertIfAbsent(second)).toEqual(first)
    expect(await opened().intents.readSerial(first.keyHash)).toEqual(first)
  })

  test('one of 64 concurrent intents for a key is stored, and all calls return it', async () => {
    const keyHash = crypto.randomUUID()
    const offered = Array.from({ length: 64 }, () => sampleIntent({ keyHash }))
    const results = await Promise.all(
      offered.map((intent) => opened().intents.insertIfAbsent(intent)),
    )
    const stored = await opened().intents.readSerial(keyHash)
    expect(offered).toContainEqual(stored)
    for (const intent of results) expect(intent).toEqual(stored)
  })
}

function defineMoveTests(opened: Opened): void {
  test('move() changes the code and nothing else', async () => {
    const intent = await insertSample(opened)
    const moved = { ...intent, code: 'next' }
    expect(await opened().intents.move({ intent, to: 'next' })).toEqual(moved)
    expect(await opened().intents.readSerial(intent.keyHash)).toEqual(moved)
  })

  test('move() from an outdated code is rejected and returns the stored intent', async () => {
    const intent = await insertSample(opened)
    const moved = await opened().intents.move({ intent, to: 'next' })
    expect(await opened().intents.move({ intent, to: 'outdated' })).toEqual(moved)
    expect(await opened().intents.readSerial(intent.keyHash)).toEqual(moved)
  })

  test('move() of an intent of another writer is rejected', async () => {
    const intent = await insertSample(opened)
    const other = { ...intent, writerId: crypto.randomUUID() }
    expect(await opened().intents.move({ intent: other, to: 'next' })).toEqual(intent)
  })

  test('move() of an absent intent creates none', async () => {
    const intent = sampleIntent()
    expect(await opened().intents.move({ intent, to: 'next' })).toBeUndefined()
    expect(await opened().intents.readSerial(intent.keyHash)).toBeUndefined()
  })

  test('one of 16 concurrent moves wins, and all return its code', async () => {
    const intent = await insertSample(opened)
    const moves = Array.from({ length: 16 }, (_, i) =>
      opened().intents.move({ intent, to: `next${String(i)}` }),
    )
    const results = await Promise.all(moves)
    const stored = await opened().intents.readSerial(intent.keyHash)
    expect(stored?.code).toMatch(/^next\d+$/)
    for (const moved of results) expect(moved).toEqual(stored)
  })
}

function defineAgeTests(opened: Opened): void {
  test('an intent expires after INTENT_TTL_MS for every call', async () => {
    const { intents, setNowMs } = opened()
    if (setNowMs === undefined) return // this store expires its rows by its own clock
    const intent = await insertSample(opened)
    setNowMs(START_MS + INTENT_TTL_MS - 1)
    expect(await intents.readSerial(intent.keyHash)).toEqual(intent)
    const moved = await intents.move({ intent, to: 'next' })
    expect(moved?.code).toBe('next')
    setNowMs(START_MS + INTENT_TTL_MS)
    expect(await intents.readSerial(intent.keyHash)).toBeUndefined()
    expect(await intents.move({ intent: { ...intent, code: 'next' }, to: 'x' })).toBeUndefined()
    const next = sampleIntent({ keyHash: intent.keyHash, createdAtMs: START_MS + INTENT_TTL_MS })
    expect(await intents.insertIfAbsent(next)).toEqual(next)
    expect(await intents.readSerial(intent.keyHash)).toEqual(next)
    setNowMs(START_MS)
  })

  test('deleteExpired() deletes only expired intents, at most max at a time', async () => {
    const { intents, swept } = opened()
    if (swept === undefined) return
    const old: Intent[] = []
    for (let i = 0; i < 3; i++)
      old.push(await insertSample(opened, { createdAtMs: START_MS - 1000 }))
    const fresh = await insertSample(opened, { createdAtMs: START_MS - 999 })
    const sweep = { beforeMs: START_MS - 1000 + INTENT_TTL_MS, max: 2 }
    expect(await swept.deleteExpired(sweep)).toBe(2)
    expect(await swept.deleteExpired(sweep)).toBe(1)
    expect(await swept.deleteExpired(sweep)).toBe(0)
    for (const { keyHash } of old) expect(await intents.readSerial(keyHash)).toBeUndefined()
    expect(await intents.readSerial(fresh.keyHash)).toEqual(fresh)
  })
}
