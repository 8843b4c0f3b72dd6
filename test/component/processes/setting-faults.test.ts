// A role prints every problem of its settings in one line each, and exits with 2; also those of
// dependent settings, for every store that the role uses, and those of files that settings name.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startRole } from '../../kit/processes/role-process.ts'
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
  /^curtail: CASSANDRA_PASSWORD \(a string\) is required if CASSANDRA_USERNAME is set$/,
]
const ofRedis = [
  /^curtail: REDIS_URL is required: /,
  /^curtail: REDIS_TLS_CLIENT_KEY \(a file\) is required if REDIS_TLS_CLIENT_CERT is set$/,
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
  expect(stderr).toContain(`curtail: ${name} and ADMIN_PORT must be different: both are 9090\n`)
  expect(exitCode).toBe(2)
})

describe('mistakes of several settings and of the files that they name', () => {
  let folder: string
  const inFolder = (name: string) => join(folder, name)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'curtail-faults-'))
    await mkdir(inFolder('config'))
    const files = {
      'rules.yaml': 'domain: standalone\ndescriptors:\n  - key: ""\n  - key: a\n    unknown: b\n',
      'config/rules.yaml': 'domain: edge\ndescriptors:\n  - key: ""\n',
      'keys.ndjson': '{"name":"a"}\nno JSON\n',
      'blocked.txt': '# a comment\nhttp://[\n',
      'template.yaml': 'spec: none\n',
      file: '',
      'ca.pem': '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
    }
    for (const [name, content] of Object.entries(files)) await writeFile(inFolder(name), content)
  })

  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  /** The values of settings; names of files after `@` are in the folder of the test. */
  const environmentOf = (given: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value.replace('@', `${folder}/`)]),
    )

  const lists = { API_KEYS: '@keys.ndjson', BLOCKED_TARGETS: '@blocked.txt' }
  const ofKeys = [
    /^API_KEYS: \S+keys\.ndjson:1: creator_id must be /,
    /^API_KEYS: \S+keys\.ndjson:2: a line must be /,
  ]
  const ofBlocked = [/^BLOCKED_TARGETS: \S+blocked\.txt:2: /]
  const ofRules = [
    /^RATE_LIMITS: \S+rules\.yaml:3: descriptor has empty key/,
    /^RATE_LIMITS: \S+rules\.yaml:5: /,
  ]
  const ofFolder = [/^DATA_DIR \S+ cannot be used: ENOTDIR; it must be a folder /]
  const standalone = { ...lists, RATE_LIMITS: '@rules.yaml', DATA_DIR: '@file/data' }
  const grpc = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: '@nowhere.crt',
    GRPC_CLIENT_TLS_CACERT: '@ca.pem',
    GRPC_CLIENT_TLS_SAN: 'envoy',
  }
  const ofGrpc = [
    /^GRPC_SERVER_USE_TLS requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: set both$/,
    /^GRPC_SERVER_TLS_CERT must name a readable file in PEM: current value is \S+nowhere\.crt$/,
    /^GRPC_CLIENT_TLS_CACERT must contain valid certificates: error:/,
  ]
  const ofRuleFiles = [
    /^RUNTIME_ROOT: Cannot load the rules in \S+config:$/,
    /^rules\.yaml:3: descriptor has empty key/,
  ]

  test.each<[string, string, Readonly<Record<string, string>>, readonly RegExp[]]>([
    [
      'standalone',
      'values, a token file, rules, lists and the folder',
      {
        ...{ ...standalone, PORT: '8080', ADMIN_PORT: '8080', ADMIN_TOKEN_FILE: '@nowhere' },
        ...{ REDIRECT_STATUS: '307' },
      },
      [
        /^REDIRECT_STATUS must be 302 or 301: current value is "307"$/,
        /^ADMIN_TOKEN_FILE must name a readable file: current value is \S+nowhere$/,
        /^PORT and ADMIN_PORT must be different: both are 8080$/,
        ...[...ofRules, ...ofKeys, ...ofBlocked, ...ofFolder],
      ],
    ],
    [
      'standalone',
      'only files, of which the start has read the first',
      { ...standalone, PORT: '0', ADMIN_PORT: '0' },
      [...ofRules, ...ofKeys, ...ofBlocked, ...ofFolder],
    ],
    ['standalone', 'only the folder', { PORT: '0', ADMIN_PORT: '0', DATA_DIR: '@file' }, ofFolder],
    [
      'create',
      'values and lists',
      { ...lists, BASE_URL: 'x', REDIS_URL: 'redis://r', ...alone },
      [/^BASE_URL must be /, ...ofCassandra.slice(0, 2), ...ofKeys, ...ofBlocked],
    ],
    [
      'migrate',
      'values and certificates',
      {
        ...{ ...alone, CASSANDRA_PORT: '9042', CASSANDRA_TLS_CA: '@ca.pem' },
        ...{ CASSANDRA_TLS_CERT: '@ca.pem', CASSANDRA_TLS_KEY: '@ca.pem' },
      },
      [
        ...ofCassandra.slice(0, 1),
        /^CASSANDRA_TLS_KEY must be the key of CASSANDRA_TLS_CERT: error:/,
        /^CASSANDRA_TLS_CA must contain valid certificates: error:/,
      ],
    ],
    [
      'redirect',
      'values and a list that cannot be read',
      { ...alone, BLOCKED_TARGETS: '@file/x', REDIS_URL: 'redis://r', BASE_URL: 'http://x' },
      [...ofCassandra.slice(0, 2), /^BLOCKED_TARGETS must name readable files: .*ENOTDIR/],
    ],
    [
      'ratelimit',
      'values, rules, certificates and Redis',
      {
        ...grpc,
        PORT: 'x',
        RUNTIME_ROOT: '@',
        RUNTIME_WATCH_ROOT: 'false',
        REDIS_AUTH_FILE: '@file',
      },
      [
        /^PORT must be /,
        ...ofGrpc,
        ...ofRuleFiles,
        /^REDIS_AUTH_FILE must name a file that is not empty: /,
        /^REDIS_URL is required: /,
      ],
    ],
    [
      'ratelimit',
      'only rules',
      { RUNTIME_ROOT: '@', RUNTIME_WATCH_ROOT: 'false', REDIS_URL: 'r:1', USE_STATSD: 'false' },
      ofRuleFiles,
    ],
    [
      'ratelimit',
      'a value and the certificates for the xDS server',
      {
        ...{ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true', PORT: 'x' },
        ...{ CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '@ca.pem', REDIS_URL: 'r:1' },
      },
      [
        /^PORT must be /,
        /^CONFIG_GRPC_XDS_SERVER_TLS_CACERT must contain valid certificates: error:/,
      ],
    ],
    [
      'controller',
      'values, certificates and the pod template',
      {
        ...{ ...forController, REFILL_POD_TEMPLATE: '@template.yaml', ADS_PORT: '1' },
        ...{ ADS_TLS_CERT: '@file', ADS_TLS_KEY: '@nowhere', LEASE_NAME: 'A' },
      },
      [
        /^LEASE_NAME must be /,
        /^ADS_TLS_CERT must name a readable file in PEM: /,
        /^ADS_TLS_KEY must name a readable file in PEM: /,
        /^REFILL_POD_TEMPLATE: /,
      ],
    ],
  ])('%s prints all of them at once: %s', async (role, _, ...[given, faults]) => {
    const { exitCode, stderr, stdout } = await runCurtail([role], environmentOf(given))
    const lines = stderr.trimEnd().split('\n')
    for (const fault of faults) {
      const line = new RegExp(fault.source.replace(/^\^(curtail: )?/, '^curtail: '))
      expect(lines).toContainEqual(expect.stringMatching(line))
    }
    expect(lines).toHaveLength(faults.length)
    expect([exitCode, stdout]).toEqual([2, ''])
  })

  test('faulty lines of lists alone do not stop the start', async () => {
    const env = { ...environmentOf(lists), DATA_DIR: inFolder('data'), PORT: '0', ADMIN_PORT: '0' }
    const started = await startRole({ role: 'standalone', env })
    await started.stop()
    const ignored = started.log.filter(({ msg }) => msg === 'lines of a list ignored')
    expect(ignored.map(({ list }) => list).sort()).toEqual(['api-keys', 'blocked-targets'])
  })
})
