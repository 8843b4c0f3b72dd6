// The stores of links, each under the one contract.
import { jest } from '@jest/globals'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import { createMemoryLinkStore } from '../../src/stores/memory/link-store.ts'
import { createSqliteLinkStore } from '../../src/stores/sqlite/link-store.ts'
import { defineLinkStoreTests, type LinkStoreCase } from './link-store.ts'
import { openNode, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'

const stores: readonly LinkStoreCase[] = [
  {
    name: 'memory',
    open() {
      const links = createMemoryLinkStore()
      return Promise.resolve({ links, swept: links, close: () => Promise.resolve() })
    },
  },
  {
    name: 'sqlite',
    async open() {
      const { db, close } = await openSqlite()
      const links = createSqliteLinkStore(db)
      return { links, swept: links, close }
    },
  },
  {
    name: 'cassandra',
    async open() {
      const { cassandra, close } = await openNode('links_contract')
      return { links: createCassandraLinkStore(cassandra), close }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineLinkStoreTests)
