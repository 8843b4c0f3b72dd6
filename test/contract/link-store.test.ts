// The stores of links, each under the one contract.
import { jest } from '@jest/globals'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CassandraSession } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import { createMemoryLinkStore } from '../../src/stores/memory/link-store.ts'
import { createSqliteLinkStore } from '../../src/stores/sqlite/link-store.ts'
import { defineLinkStoreTests, type LinkStoreCase } from './link-store.ts'
import { openNode, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'

/** A store that loses its connection with its first write, which arrives when it is told to. */
function openLateStore(cassandra: CassandraSession) {
  let held: (() => Promise<unknown>) | undefined
  const links = createCassandraLinkStore(
    {
      warmUp: () => undefined,
      execute(kind, cql, values) {
        if (held !== undefined)
          return Promise.reject(new StoreError('gone', { outcome: 'not-done' }))
        if (kind !== 'lwt') return cassandra.execute(kind, cql, values)
        held = () => cassandra.execute(kind, cql, values)
        return Promise.reject(new StoreError('gone', { outcome: 'unknown' }))
      },
    },
    { pause: () => Promise.resolve() },
  )
  const arrive = async () => {
    if (held === undefined) throw new Error('nothing was written')
    await held()
  }
  return { links, arrive }
}

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
      const openLate = () => openLateStore(cassandra)
      return { links: createCassandraLinkStore(cassandra), openLate, close }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineLinkStoreTests)
