// The schema version during a migration. The migration itself needs a real node: see
// test/component/stores/cassandra-migrate.test.ts.
import { expect, test } from '@jest/globals'
import { StoreError } from '../../resilience/store-error.ts'
import { readSchemaVersion } from './migrations.ts'
import type { Row } from './row.ts'
import type { StatementKind } from './statement-kinds.ts'

/** A cluster that lists the table and runs `read` for a read of it. */
function listing(read: () => Promise<readonly Row[]>) {
  return {
    warmUp: () => undefined,
    execute: (kind: StatementKind, cql: string) => {
      if (cql.includes('system_schema')) return Promise.resolve([{ table_name: 'it' }])
      expect(kind).toBe('new-table-scan') // whose rejections are not logged
      return read()
    },
  }
}

function failure(code: number, message = 'failed'): StoreError {
  const cause = Object.assign(new Error(message), { name: 'ResponseError', code })
  return new StoreError('no', { outcome: 'not-done', cause })
}

test('readSchemaVersion() returns the newest version', async () => {
  const rows = [{ version: 0 }, { version: 2 }, { version: 1 }]
  expect(
    await readSchemaVersion(
      listing(() => Promise.resolve(rows)),
      'k',
    ),
  ).toBe(2)
})

test.each([
  ['rejects the statement', failure(0x2200)],
  ['fails', failure(0x0000, 'java.lang.IllegalArgumentException: Unknown CF 8f407497')],
])('readSchemaVersion() returns 0 if a node %s while it creates the table', async (_, error) => {
  const creating = listing(() => Promise.reject(error))
  expect(await readSchemaVersion(creating, 'k')).toBe(0)
})

test.each([failure(0x2100), failure(0x0000)])(
  'readSchemaVersion() throws every other error',
  async (error) => {
    const failing = listing(() => Promise.reject(error))
    await expect(readSchemaVersion(failing, 'k')).rejects.toThrow(StoreError)
  },
)
