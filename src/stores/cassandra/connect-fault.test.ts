// Causes of failed connections to Cassandra: the driver's errors as sentences for an operator.
import { expect, test } from '@jest/globals'
import { errors } from 'cassandra-driver'
import { connectFaultOf, isNoNodeReached } from './connect-fault.ts'
import type { CassandraPlan } from './settings.ts'

const plan: CassandraPlan = {
  hosts: ['db-0', 'db-1'],
  port: 9042,
  localDc: 'dc9',
  keyspace: 'curtail',
  credentials: { username: 'me', password: 'secret' },
  tls: undefined,
  isGlobal: false,
}
const of = (inner: Record<string, unknown>) => new errors.NoHostAvailableError(inner)
const withCode = (message: string, code: string) => Object.assign(new Error(message), { code })
const login = 'CASSANDRA_USERNAME and CASSANDRA_PASSWORD'
const points = 'CASSANDRA_CONTACT_POINTS (db-0, db-1)'

test.each([
  [
    'no node responds',
    of({ a: withCode('connect ECONNREFUSED', 'ECONNREFUSED') }),
    { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port 9042` },
  ],
  [
    'no name can be resolved',
    new errors.NoHostAvailableError({}, 'No host could be resolved'),
    { kind: 'unreachable', sentence: `no name in ${points} can be resolved` },
  ],
  [
    'the password is wrong',
    of({ a: withCode('connect', 'ECONNREFUSED'), b: new errors.AuthenticationError('bad') }),
    {
      kind: 'credentials',
      sentence: `Cassandra rejects ${login}: use those of a role that may log in`,
    },
  ],
  [
    'a node rejects the login itself',
    new errors.ResponseError(0x0100, 'bad credentials'),
    {
      kind: 'credentials',
      sentence: `Cassandra rejects ${login}: use those of a role that may log in`,
    },
  ],
  [
    'the data center does not exist',
    of({
      a: new errors.ArgumentError(
        "localDataCenter was configured as 'dc9', but only found hosts in data centers: [dc1, dc2]",
      ),
    }),
    {
      kind: 'data-center',
      sentence: 'CASSANDRA_LOCAL_DC must be one of dc1, dc2: current value is dc9',
    },
  ],
  [
    'the keyspace does not exist',
    new errors.ResponseError(0x2200, "Keyspace 'curtail' does not exist"),
    {
      kind: 'keyspace',
      sentence: 'unknown keyspace curtail in Cassandra: run curtail migrate',
    },
  ],
  [
    'the authority is not trusted',
    of({ a: withCode('self-signed certificate', 'SELF_SIGNED_CERT_IN_CHAIN') }),
    {
      kind: 'tls',
      sentence: 'TLS with Cassandra failed: self-signed certificate: check CASSANDRA_TLS_CA',
    },
  ],
  [
    'one of several names cannot be resolved',
    new errors.NoHostAvailableError({ a: new Error('x') }, 'No host could be resolved'),
    { kind: 'unreachable', sentence: `no name in ${points} can be resolved` },
  ],
  [
    'another statement is invalid',
    new errors.ResponseError(0x2200, 'unconfigured table x'),
    { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port 9042` },
  ],
  [
    'the message, but not the code, is of a missing keyspace',
    new errors.ResponseError(0x0000, "Keyspace 'curtail' does not exist"),
    { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port 9042` },
  ],
  [
    'the code only contains a word of TLS',
    of({ a: withCode('x', 'X_SELF_TEST') }),
    { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port 9042` },
  ],
  [
    'the error is unknown',
    null,
    { kind: 'unreachable', sentence: `Cassandra is unavailable at ${points} on port 9042` },
  ],
])('connectFaultOf() when %s', (_, error, fault) => {
  expect(connectFaultOf(error, plan)).toEqual(fault)
})

test('connectFaultOf() reports missing credentials', () => {
  const error = of({ a: new errors.AuthenticationError('needed') })
  expect(connectFaultOf(error, { ...plan, credentials: undefined }).sentence).toBe(
    'Cassandra requires credentials: set CASSANDRA_USERNAME and CASSANDRA_PASSWORD',
  )
})

const notListening = withCode('connect ECONNREFUSED', 'ECONNREFUSED')

test.each([
  [true, 'every node refuses connections', of({ a: notListening, b: notListening })],
  [
    true,
    'no name can be resolved',
    new errors.NoHostAvailableError({}, 'No host could be resolved'),
  ],
  [true, 'a connection times out', of({ a: new Error('Connection timeout') })],
  [false, 'a node resets the connection', of({ a: notListening, b: withCode('', 'ECONNRESET') })],
  [false, 'a request times out', of({ a: new errors.OperationTimedOutError('no reply') })],
  [
    false,
    'the password is wrong',
    of({ a: notListening, b: new errors.AuthenticationError('bad') }),
  ],
  [false, 'the error is unknown', null],
])('isNoNodeReached() is %s when %s', (expected, _, error) => {
  expect(isNoNodeReached(error)).toBe(expected)
})
