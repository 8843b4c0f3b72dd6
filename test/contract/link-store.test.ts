// Runs the contract on every link store.
import { expect, jest } from '@jest/globals'
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CassandraSession } from '../../src/stores/cassandra/client.ts'
import { createCassandraLinkStore } from '../../src/stores/cassandra/link-store.ts'
import { createMemoryLinkStore } from '../kit/stores/memory-link-store.ts'
import { createSqliteLinkStore } from '../../src/stores/sqlite/link-store.ts'
import { defineLinkStoreTests, type LinkStoreCase } from './link-store.ts'
import { openStatements, SETUP_MS_MAX } from './open-cassandra.ts'
import { openSqlite } from './open-sqlite.ts'

/** A store whose connection is lost at its first write; `deliver` sends that write. */
function openStoreWithDelayedWrite(cassandra: CassandraSession) {
  let delayed: (() => Promise<unknown>) | undefined
  const links = createCassandraLinkStore(
    {
      warmUp: () => undefined,
      execute(kind, cql, values) {
        if (delayed !== undefined)
          return Promise.reject(new StoreError('connection lost', { outcome: 'not-done' }))
        if (kind !== 'lwt') return cassandra.execute(kind, cql, values)
        delayed = () => cassandra.execute(kind, cql, values)
        return Promise.reject(new StoreError('connection lost', { outcome: 'unknown' }))
      },
    },
    { pause: () => Promise.resolve() },
  )
  const deliver = async () => {
    if (delayed === undefined) throw new Error('there was no write to deliver')
    await delayed()
  }
  return { links, deliver }
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
      const { cassandra, close } = await openStatements('links_contract')
      const openDelayed = () => openStoreWithDelayedWrite(cassandra)
      const tokenOf = async (code: string) => {
        const cql = 'SELECT token(short_code) AS position FROM links WHERE short_code = ?'
        const [row] = await cassandra.execute('majority-read', cql, [code])
        expect(typeof row?.['position']).toBe('bigint')
        return row?.['position']
      }
      return { links: createCassandraLinkStore(cassandra), tokenOf, openDelayed, close }
    },
  },
]

jest.setTimeout(SETUP_MS_MAX)
stores.forEach(defineLinkStoreTests)
