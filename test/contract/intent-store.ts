// What every store of intents must do: the promises of src/links/intent-store.ts as tests. Knows
// no store; intent-store.test.ts lists them.
import { describe, expect, test } from '@jest/globals'
import { type Intent, INTENT_TTL_MS, type IntentStore } from '../../src/links/intent-store.ts'
import type { SweptStore } from '../../src/links/link-store.ts'
import { openCase } from './open-case.ts'

/** An open store. */
interface OpenedIntentStore {
  readonly intents: IntentStore
  /** Sets the clock by which intents age; absent where the store has a clock of its own. */
  readonly setNowMs?: (nowMs: number) => void
  /** The same store where intents do not expire by themselves. */
  readonly swept?: SweptStore
  readonly close: () => Promise<void>
}

/** One member of the list. */
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
    const given = openCase({ name, open })
    defineInsertTests(given)
    defineMoveTests(given)
    defineAgeTests(given)
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

async function stored(given: Opened, change: Partial<Intent> = {}): Promise<Intent> {
  const intent = sampleIntent(change)
  expect(await given().intents.insertIfAbsent(intent)).toEqual(intent)
  return intent
}

function defineInsertTests(given: Opened): void {
  test('insertIfAbsent() stores an intent whole, with and without an end', async () => {
    for (const expiresAtMs of [null, START_MS + 1]) {
      const intent = await stored(given, { expiresAtMs })
      expect(await given().intents.readSerial(intent.keyHash)).toEqual(intent)
    }
  })

  test('a key without an intent reads as none', async () => {
    expect(await given().intents.readSerial(crypto.randomUUID())).toBeUndefined()
  })

  test('insertIfAbsent() on a used key answers the intent there and changes nothing', async () => {
    const first = await stored(given)
    const second = sampleIntent({ keyHash: first.keyHash, code: 'other', expiresAtMs: null })
    expect(await given().intents.insertIfAbsent(second)).toEqual(first)
    expect(await given().intents.readSerial(first.keyHash)).toEqual(first)
  })

  test('of 64 concurrent intents for one key one stands, and all are told it', async () => {
    const keyHash = crypto.randomUUID()
    const offered = Array.from({ length: 64 }, () => sampleIntent({ keyHash }))
    const told = await Promise.all(offered.map((intent) => given().intents.insertIfAbsent(intent)))
    const stood = await given().intents.readSerial(keyHash)
    expect(offered).toContainEqual(stood)
    for (const intent of told) expect(intent).toEqual(stood)
  })
}

function defineMoveTests(given: Opened): void {
  test('move() changes the code and nothing else', async () => {
    const intent = await stored(given)
    const moved = { ...intent, code: 'next' }
    expect(await given().intents.move({ intent, to: 'next' })).toEqual(moved)
    expect(await given().intents.readSerial(intent.keyHash)).toEqual(moved)
  })

  test('move() from a code no longer there is refused and told the one that is', async () => {
    const intent = await stored(given)
    const moved = await given().intents.move({ intent, to: 'next' })
    expect(await given().intents.move({ intent, to: 'late' })).toEqual(moved)
    expect(await given().intents.readSerial(intent.keyHash)).toEqual(moved)
  })

  test('move() of an intent by another writer is refused', async () => {
    const intent = await stored(given)
    const other = { ...intent, writerId: crypto.randomUUID() }
    expect(await given().intents.move({ intent: other, to: 'next' })).toEqual(intent)
  })

  test('move() of an intent that is not there makes none', async () => {
    const intent = sampleIntent()
    expect(await given().intents.move({ intent, to: 'next' })).toBeUndefined()
    expect(await given().intents.readSerial(intent.keyHash)).toBeUndefined()
  })

  test('of 16 concurrent moves one wins, and all are told its code', async () => {
    const intent = await stored(given)
    const moves = Array.from({ length: 16 }, (_, i) =>
      given().intents.move({ intent, to: `next${String(i)}` }),
    )
    const told = await Promise.all(moves)
    const stood = await given().intents.readSerial(intent.keyHash)
    expect(stood?.code).toMatch(/^next\d+$/)
    for (const moved of told) expect(moved).toEqual(stood)
  })
}

function defineAgeTests(given: Opened): void {
  test('an intent stands for INTENT_TTL_MS and is then absent for every call', async () => {
    const { intents, setNowMs } = given()
    if (setNowMs === undefined) return // this store ages its rows by a clock of its own
    const intent = await stored(given)
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

  test('deleteEnded() takes intents past their life only, at most max at a time', async () => {
    const { intents, swept } = given()
    if (swept === undefined) return
    const old: Intent[] = []
    for (let i = 0; i < 3; i++) old.push(await stored(given, { createdAtMs: START_MS - 1000 }))
    const fresh = await stored(given, { createdAtMs: START_MS - 999 })
    const sweep = { beforeMs: START_MS - 1000 + INTENT_TTL_MS, max: 2 }
    expect(await swept.deleteEnded(sweep)).toBe(2)
    expect(await swept.deleteEnded(sweep)).toBe(1)
    expect(await swept.deleteEnded(sweep)).toBe(0)
    for (const { keyHash } of old) expect(await intents.readSerial(keyHash)).toBeUndefined()
    expect(await intents.readSerial(fresh.keyHash)).toEqual(fresh)
  })
}
