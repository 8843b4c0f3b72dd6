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

function rejection(code: number): StoreError {
  const cause = Object.assign(new Error('rejected'), { name: 'ResponseError', code })
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

test('readSchemaVersion() returns 0 if the table is listed but not readable yet', async () => {
  const creating = listing(() => Promise.reject(rejection(0x2200)))
  expect(await readSchemaVersion(creating, 'k')).toBe(0)
})

test('readSchemaVersion() throws every other error', async () => {
  const rejecting = listing(() => Promise.reject(rejection(0x2100)))
  await expect(readSchemaVersion(rejecting, 'k')).rejects.toThrow(StoreError)
})
