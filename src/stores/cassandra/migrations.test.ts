// The version of a schema that is just being made. Migrating itself needs a real node: see
// test/component/cassandra-migrate.test.ts.
import { expect, test } from '@jest/globals'
import { StoreError } from '../../resilience/store-error.ts'
import { readSchemaVersion } from './migrations.ts'
import type { Row } from './row.ts'

/** A cluster that lists the table, and answers to a read of it. */
function listing(read: () => Promise<readonly Row[]>) {
  return {
    warmUp: () => undefined,
    execute: (_: unknown, cql: string) =>
      cql.includes('system_schema') ? Promise.resolve([{ table_name: 'it' }]) : read(),
  }
}

function refusal(code: number): StoreError {
  const cause = Object.assign(new Error('refused'), { name: 'ResponseError', code })
  return new StoreError('no', { outcome: 'not-done', cause })
}

test('readSchemaVersion() gives the newest version', async () => {
  const rows = [{ version: 0 }, { version: 2 }, { version: 1 }]
  expect(
    await readSchemaVersion(
      listing(() => Promise.resolve(rows)),
      'k',
    ),
  ).toBe(2)
})

test('readSchemaVersion() gives 0 where the table is listed but not there yet', async () => {
  const making = listing(() => Promise.reject(refusal(0x2200)))
  expect(await readSchemaVersion(making, 'k')).toBe(0)
})

test('readSchemaVersion() throws every other refusal', async () => {
  const refusing = listing(() => Promise.reject(refusal(0x2100)))
  await expect(readSchemaVersion(refusing, 'k')).rejects.toThrow(StoreError)
})
