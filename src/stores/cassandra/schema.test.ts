// What the schema promises: released steps that never change, the id of the table that concurrent
// migrations create, and how long deleted and expired rows are kept.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { REPORT_TTL_MS } from '../../links/report.ts'
import { createKeyspace, createMigrationsTable, migrations, schemaVersion } from './schema.ts'

const digestOf = (statements: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(statements)).digest('hex').slice(0, 16)

test('a released step never changes, and the last one is the version of the schema', () => {
  expect(migrations.map(({ version, statements }) => [version, digestOf(statements)])).toEqual([
    [1, 'd71a0afc982fa788'],
    [2, 'd5ede29efb3a4c36'],
    [3, '0724a7a58d25ce3b'],
  ])
  expect(schemaVersion).toBe(3)
})

test('deletions have ten days to reach every replica, rows that only expire have six hours', () => {
  const tables = migrations
    .flatMap(({ statements }) => statements)
    .flatMap((statement) => {
      const [, table] = /^CREATE TABLE IF NOT EXISTS KEYSPACE\.(\w+)/.exec(statement) ?? []
      const [, seconds] = /gc_grace_seconds = (\S+)/.exec(statement) ?? []
      return table === undefined ? [] : [[table, seconds]]
    })
  expect(Object.fromEntries(tables)).toEqual({
    ...{ links: '864000', code_pools: '864000', code_pool_numbers: '864000' },
    ...{ code_blocks: '864000', idempotent_creates: '21600', reports: '21600' },
  })
  const [reports] = migrations[2]?.statements ?? []
  expect(reports).toContain(`default_time_to_live = ${REPORT_TTL_MS / 1000}\n`)
})

test('all processes create the table of applied steps with the same id', () => {
  const idOf = (keyspace: string) => / id = (\S+) /.exec(createMigrationsTable(keyspace))?.[1]
  expect(idOf('curtail')).toBe('8f407497-e16e-5103-8e39-e9d172a162e5')
  expect(idOf('other')).not.toBe(idOf('curtail'))
  expect(createMigrationsTable('other')).toMatch(/^CREATE TABLE IF NOT EXISTS other\./)
})

test('a keyspace has replicas in each data center', () => {
  const replication = [
    { dc: 'eu', replicas: 3 },
    { dc: 'us', replicas: 2 },
  ]
  expect(createKeyspace('curtail', replication)).toBe(
    'CREATE KEYSPACE IF NOT EXISTS curtail WITH replication = ' +
      "{'class': 'NetworkTopologyStrategy', 'eu': 3, 'us': 2}",
  )
})
