// The stores of code pools, each under the one contract.
import { createMemoryCodeStore } from '../../src/stores/memory/code-store.ts'
import { createSqliteCodeStore } from '../../src/stores/sqlite/code-store.ts'
import { type CodeStoreCase, defineCodeStoreTests } from './code-store.ts'
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
]

stores.forEach(defineCodeStoreTests)
