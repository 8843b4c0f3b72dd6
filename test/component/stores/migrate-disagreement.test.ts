// `migrate` on a cluster whose nodes do not agree on the keyspace that it has just created.
import { beforeEach, expect, jest, test } from '@jest/globals'
import { errors } from 'cassandra-driver'
import { StoreError } from '../../../src/resilience/store-error.ts'
import type { Cassandra, CassandraOptions } from '../../../src/stores/cassandra/client.ts'
import { schemaVersion } from '../../../src/stores/cassandra/schema.ts'

/** The results of the schema changes, in order: whether the nodes agree, or a rejection. */
let outcomes: (boolean | string)[]
let changes: string[]
let options: CassandraOptions | undefined

/** A cluster whose tables already have the newest schema once its keyspace exists. */
const cassandra: Cassandra = {
  ready: Promise.resolve('up'),
  isUp: () => true,
  warmUp: () => undefined,
  executeOnEach: () => Promise.resolve([]),
  close: () => Promise.resolve(),
  execute(kind, cql) {
    if (kind === 'lwt') return Promise.resolve([{ '[applied]': true }])
    if (cql.includes('system_schema.keyspaces'))
      return Promise.resolve(changes.length === 0 ? [] : [{ keyspace_name: 'curtail' }])
    return Promise.resolve([{ version: schemaVersion }])
  },
  changeSchema(cql) {
    changes.push(cql.split(/ IF| \(/, 1)[0] ?? '')
    const outcome = outcomes.shift() ?? true
    if (outcome === true) return Promise.resolve()
    const cause = outcome === false ? undefined : new errors.ResponseError(0x2200, outcome)
    return Promise.reject(new StoreError('rejected', { outcome: 'not-done', cause }))
  },
}
jest.unstable_mockModule('../../../src/stores/cassandra/client.ts', () => ({
  openCassandra(given: CassandraOptions) {
    options = given
    return cassandra
  },
}))
const { role } = await import('../../../src/roles/migrate.ts')

beforeEach(() => {
  changes = []
})

const migrate = () =>
  role.start({
    env: {
      CASSANDRA_CONTACT_POINTS: '127.0.0.1',
      CASSANDRA_LOCAL_DC: 'dc1',
      CASSANDRA_REPLICATION: 'dc1:3',
      LOG_LEVEL: 'fatal',
    },
    args: [],
    signal: new AbortController().signal,
  })

test('it retries until every node has the schema', async () => {
  outcomes = [
    false,
    "Keyspace 'curtail' doesn't exist",
    'keyspace curtail does not exist',
    'table schema_migrations does not exist',
    'unconfigured table schema_migrations',
  ]
  expect(await migrate()).toEqual({ exitCode: 0 })
  expect(changes).toEqual(['CREATE KEYSPACE', ...Array<string>(5).fill('CREATE TABLE')])
  // Cassandra may have been installed with it.
  expect(options?.startMsMax).toBe(300_000)
})

test('another rejection is permanent', async () => {
  outcomes = [true, 'Invalid compaction']
  await expect(migrate()).rejects.toThrow('Cassandra rejects the migration: Invalid compaction')
})
