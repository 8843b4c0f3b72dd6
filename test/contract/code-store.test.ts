// Runs the contract on every store of code pools.
import { jest } from '@jest/globals'
import { createCassandraCodeStore } from '../../src/stores/cassandra/code-store.ts'
import { createMemoryCodeStore } from '../kit/stores/memory-code-store.ts'
import { createSqliteCodeStore } from '../../src/stores/sqlite/code-store.ts'
import { type CodeStoreCase, defineCodeStoreTests } from './code-store.ts'
import { openStatements, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'

const stores: readonly CodeStoreCase[] = [
  {
    name: 'memory',
    open: () => Promise.resolve({ codes: createMemoryCodeStore(), close: () => Promise.resolve() }),
  },
  {
    name: 'sqlite',
    async open() {
      const { db, close } = await openSqlite()
      return { codes: createSqliteCodeStore(db), close }
    },
  },
  {
    name: 'cassandra',
    async open() {
      const { cassandra, close } = await openStatements('codes_contract')
      return { codes: createCassandraCodeStore(cassandra), close }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineCodeStoreTests)
