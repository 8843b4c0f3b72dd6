// Runs the contract on every intent store.
import { jest } from '@jest/globals'
import { createCassandraIntentStore } from '../../src/stores/cassandra/intent-store.ts'
import { createMemoryIntentStore } from '../kit/stores/memory-intent-store.ts'
import { createSqliteIntentStore } from '../../src/stores/sqlite/intent-store.ts'
import { defineIntentStoreTests, type IntentStoreCase, START_MS } from './intent-store.ts'
import { openStatements, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'

function fakeClock() {
  let nowMs = START_MS
  return {
    nowMs: () => nowMs,
    setNowMs: (to: number) => {
      nowMs = to
    },
  }
}

const stores: readonly IntentStoreCase[] = [
  {
    name: 'memory',
    open() {
      const { nowMs, setNowMs } = fakeClock()
      const intents = createMemoryIntentStore(nowMs)
      return Promise.resolve({ intents, setNowMs, close: () => Promise.resolve() })
    },
  },
  {
    name: 'sqlite',
    async open() {
      const { nowMs, setNowMs } = fakeClock()
      const { db, close } = await openSqlite()
      const intents = createSqliteIntentStore(db, nowMs)
      return { intents, setNowMs, swept: intents, close }
    },
  },
  {
    name: 'cassandra',
    async open() {
      const { cassandra, close } = await openStatements('intents_contract')
      const { nowMs } = fakeClock()
      return { intents: createCassandraIntentStore(cassandra, nowMs), close }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineIntentStoreTests)
