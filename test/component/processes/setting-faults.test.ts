// A role prints every problem of its settings in one line each, and exits with 2; also those of
// dependent settings, for every store that the role uses.
import { expect, test } from '@jest/globals'
import { runCurtail } from '../../kit/processes/run-curtail.ts'

const PEM = 'must name a readable file in PEM: current value is /nowhere'

const alone = {
  CASSANDRA_CONTACT_POINTS: 'a b',
  CASSANDRA_LOCAL_DC: 'dc1',
  CASSANDRA_PORT: '0',
}
const forController = {
  ...{ CASSANDRA_CONTACT_POINTS: '127.0.0.1', CASSANDRA_LOCAL_DC: 'dc1' },
  REFILL_POD_TEMPLATE: '/nowhere',
  RATELIMIT_DOMAINS: '[{"domain":"d","namespaces":["n"]}]',
}
const dependent = {
  CASSANDRA_USERNAME: 'me',
  CASSANDRA_TLS_CA: '/nowhere',
  REDIS_TLS_CLIENT_CERT: '/nowhere',
}
const ofCassandra = [
  /^curtail: CASSANDRA_CONTACT_POINTS must be .*: current value is "a b"$/,
  /^curtail: CASSANDRA_PORT must be .*: current value is "0"$/,
  new RegExp(`^curtail: CASSANDRA_TLS_CA ${PEM}$`),
  /^curtail: CASSANDRA_PASSWORD is required if CASSANDRA_USERNAME is set: a string$/,
]
const ofRedis = [
  /^curtail: REDIS_URL is required: /,
  /^curtail: REDIS_TLS_CLIENT_KEY is required if REDIS_TLS_CLIENT_CERT is set: a file$/,
  new RegExp(`^curtail: REDIS_TLS_CLIENT_CERT ${PEM}$`),
]
const ofAddress = [/^curtail: BASE_URL is required: /]

test.each([
  ['create', [...ofAddress, ...ofCassandra, ...ofRedis]],
  ['redirect', [...ofAddress, ...ofCassandra, ...ofRedis]],
  ['refill', [...ofCassandra, /^curtail: CODE_SECRET_FILE /, /^curtail: POOL_TARGET /]],
  ['migrate', ofCassandra],
  ['wait-for-codes', ofCassandra],
])('%s prints every problem of its settings and exits with 2', async (role, faults) => {
  const { exitCode, stderr, stdout } = await runCurtail([role], { ...alone, ...dependent })
  const lines = stderr.trimEnd().split('\n')
  for (const fault of faults) expect(lines).toContainEqual(expect.stringMatching(fault))
  expect(lines).toHaveLength(faults.length)
  expect([exitCode, stdout]).toEqual([2, ''])
})

test.each<readonly [string, string, Readonly<Record<string, string>>]>([
  ['standalone', 'PORT', {}],
  ['controller', 'ADS_PORT', forController],
])('%s: %s and the admin port must be different', async (role, name, env) => {
  const { exitCode, stderr } = await runCurtail([role], { ...env, [name]: '9090' })
  expect(stderr).toBe(`curtail: ${name} and ADMIN_PORT must be different: both are 9090\n`)
  expect(exitCode).toBe(2)
})
