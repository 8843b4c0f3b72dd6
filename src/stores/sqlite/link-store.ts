// Links in SQLite: the writer thread writes; the main thread reads committed data (`find`, `scan`).
import { setImmediate } from 'node:timers/promises'
import type { Link } from '../../links/link.ts'
import type { LinkStore, ScannedStore, SweptStore } from '../../links/link-store.ts'
import type { Database } from './database.ts'
import { READ_LINK, SCAN_LINKS } from './operations.ts'
import { integerOf, numberOf, type Row, stringOf } from './row.ts'

/** Sorts before every code. */
const BEFORE_EVERY_CODE = ''

/** The links of an open database. */
export function createSqliteLinkStore(db: Database): LinkStore & ScannedStore & SweptStore {
  const findLink = db.prepareRead(READ_LINK, linkOf)
  const scanLinks = db.prepareReadSlice(SCAN_LINKS, linkOf)
  const read = (row: Row | undefined) => (row === undefined ? undefined : linkOf(row))
  return {
    async insertIfAbsent(link) {
      const existing = await db.writer.run('insertLink', { ...link })
      return existing === undefined ? link.writerId : stringOf(existing['writer_id'])
    },
    find: (code) => findLink({ code }),
    readSerial: async (code) => read(await db.writer.run('readLink', { code })),
    setDisabled: async (change) => read(await db.writer.run('setDisabled', change)),
    erase: async (change) => read(await db.writer.run('eraseLink', change)),
    async deleteExpired(sweep) {
      return integerOf((await db.writer.run('deleteExpiredLinks', sweep))?.['deleted'])
    },
    // On a slow disk, a page takes seconds: other requests are served between its slices.
    async scan({ after = BEFORE_EVERY_CODE, max }) {
      const links: Link[] = []
      for (;;) {
        const cursor = links.at(-1)?.code ?? after
        const slice = await scanLinks({ after: cursor, max: max - links.length })
        links.push(...slice.rows)
        if (slice.isComplete || links.length === max) return links
        await setImmediate()
      }
    },
  }
}

function linkOf(row: Row): Link {
  return {
    code: stringOf(row['short_code']),
    longUrl: row['long_url'] === null ? null : stringOf(row['long_url']),
    createdAtMs: integerOf(row['created_at']),
    expiresAtMs: numberOf(row['expires_at']),
    creatorId: row['creator_id'] === null ? null : BigInt(stringOf(row['creator_id'])),
    writerId: stringOf(row['writer_id']),
    disabledAtMs: numberOf(row['disabled_at']),
    deletedAtMs: numberOf(row['deleted_at']),
  }
}
