// Cassandra's settings: the resulting plan, and the message of every problem.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import { parseConfig } from '../../config/config.ts'
import {
  cassandraDependentSettings,
  cassandraSettings,
  planCassandra,
  replicationSetting,
} from './settings.ts'

const given = { CASSANDRA_CONTACT_POINTS: 'db-0.db', CASSANDRA_LOCAL_DC: 'dc1' }
let folder: string
let pem: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'curtail-test-'))
  pem = join(folder, 'a.pem')
  writeFileSync(pem, '-----BEGIN CERTIFICATE-----\n')
})

afterAll(() => {
  rmSync(folder, { recursive: true })
})

const planOf = (env: Record<string, string>) =>
  planCassandra(parseConfig(cassandraSettings, { ...given, ...env }))

const problemsOf = (env: Readonly<Record<string, string>>) => configProblems(() => planOf(env))

describe('planCassandra()', () => {
  test('applies the defaults', () => {
    expect(planOf({})).toEqual({
      hosts: ['db-0.db'],
      port: 9042,
      localDc: 'dc1',
      keyspace: 'curtail',
      credentials: undefined,
      tls: undefined,
      isGlobal: false,
    })
  })

  test('applies every setting', () => {
    const plan = planOf({
      CASSANDRA_CONTACT_POINTS: 'a.example, 10.0.0.1,::1',
      CASSANDRA_PORT: '9142',
      CASSANDRA_KEYSPACE: 'links_2',
      CASSANDRA_USERNAME: 'me',
      CASSANDRA_PASSWORD: 'secret',
      CASSANDRA_TLS_CA: pem,
      CASSANDRA_TLS_CERT: pem,
      CASSANDRA_TLS_KEY: pem,
      CASSANDRA_SERIAL: 'global',
    })
    const content = '-----BEGIN CERTIFICATE-----\n'
    expect(plan).toEqual({
      hosts: ['a.example', '10.0.0.1', '::1'],
      port: 9142,
      localDc: 'dc1',
      keyspace: 'links_2',
      credentials: { username: 'me', password: 'secret' },
      tls: { ca: content, cert: content, key: content },
      isGlobal: true,
    })
  })

  const hosts = (count: number) => Array.from({ length: count }, (_, i) => `db-${i}`).join()

  test.each([
    ['CASSANDRA_CONTACT_POINTS', 'a'],
    ['CASSANDRA_CONTACT_POINTS', '_a-b.Z9_'],
    ['CASSANDRA_CONTACT_POINTS', '2001:db8::1'],
    ['CASSANDRA_CONTACT_POINTS', 'db.example.'],
    ['CASSANDRA_CONTACT_POINTS', 'a'.repeat(254)],
    ['CASSANDRA_CONTACT_POINTS', hosts(64)],
    ['CASSANDRA_PORT', '1'],
    ['CASSANDRA_PORT', '65535'],
    ['CASSANDRA_LOCAL_DC', 'D'],
    ['CASSANDRA_LOCAL_DC', 'eu-west_1.b'],
    ['CASSANDRA_LOCAL_DC', 'a'.repeat(64)],
    ['CASSANDRA_KEYSPACE', 'a'],
    ['CASSANDRA_KEYSPACE', `a_9${'z'.repeat(45)}`],
    ['CASSANDRA_SERIAL', 'local'],
  ])('allows %s=%j', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([])
  })

  test.each([
    ['CASSANDRA_CONTACT_POINTS', 'a-'],
    ['CASSANDRA_CONTACT_POINTS', '.a'],
    ['CASSANDRA_CONTACT_POINTS', 'a b'],
    ['CASSANDRA_CONTACT_POINTS', 'a'.repeat(255)],
    ['CASSANDRA_CONTACT_POINTS', hosts(65)],
    ['CASSANDRA_PORT', '65536'],
    ['CASSANDRA_LOCAL_DC', 'a'.repeat(65)],
    ['CASSANDRA_KEYSPACE', '_a'],
    ['CASSANDRA_KEYSPACE', 'aA'],
    ['CASSANDRA_CONTACT_POINTS', ''],
    ['CASSANDRA_CONTACT_POINTS', 'a:9042'],
    ['CASSANDRA_CONTACT_POINTS', 'a,,b'],
    ['CASSANDRA_CONTACT_POINTS', '-x'],
    ['CASSANDRA_PORT', '0'],
    ['CASSANDRA_LOCAL_DC', ''],
    ['CASSANDRA_LOCAL_DC', "dc'1"],
    ['CASSANDRA_KEYSPACE', 'Curtail'],
    ['CASSANDRA_KEYSPACE', '1a'],
    ['CASSANDRA_KEYSPACE', 'a;b'],
    ['CASSANDRA_KEYSPACE', 'a'.repeat(49)],
    ['CASSANDRA_SERIAL', 'both'],
  ])('rejects %s=%j', (name, value) => {
    expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(name)])
  })

  test('reports every problem of dependent settings, and never the password', () => {
    const problems = problemsOf({
      CASSANDRA_PASSWORD: 'secret',
      CASSANDRA_TLS_CERT: '/nowhere',
      CASSANDRA_TLS_CA: '/dev/null',
    })
    expect(problems).toEqual([
      'CASSANDRA_TLS_KEY (a file) is required if CASSANDRA_TLS_CERT is set',
      'CASSANDRA_TLS_CA must name a readable file in PEM: current value is /dev/null',
      'CASSANDRA_TLS_CERT must name a readable file in PEM: current value is /nowhere',
      'CASSANDRA_USERNAME (a string) is required if CASSANDRA_PASSWORD is set',
    ])
    expect(problemsOf({ CASSANDRA_USERNAME: 'me' })).toEqual([
      'CASSANDRA_PASSWORD (a string) is required if CASSANDRA_USERNAME is set',
    ])
    expect(problemsOf({ CASSANDRA_TLS_KEY: pem })).toEqual([
      'CASSANDRA_TLS_CERT (a file) is required if CASSANDRA_TLS_KEY is set',
    ])
  })
})

test('only the password is a secret', () => {
  const secret = Object.entries(cassandraSettings).filter(
    ([, setting]) => 'secret' in setting && setting.secret,
  )
  expect(secret.map(([name]) => name)).toEqual(['CASSANDRA_PASSWORD'])
})

describe('cassandraDependentSettings', () => {
  const [tls, login] = cassandraDependentSettings

  test('the settings of TLS, and those of the login, depend on each other', () => {
    expect(cassandraDependentSettings.map(({ names }) => names)).toEqual([
      ['CASSANDRA_TLS_CA', 'CASSANDRA_TLS_CERT', 'CASSANDRA_TLS_KEY'],
      ['CASSANDRA_USERNAME', 'CASSANDRA_PASSWORD'],
    ])
    expect([tls?.findProblems({}), login?.findProblems({})]).toEqual([[], []])
  })

  test('the problems of each are found', () => {
    expect(login?.findProblems({ CASSANDRA_USERNAME: 'me' })).toEqual([
      'CASSANDRA_PASSWORD (a string) is required if CASSANDRA_USERNAME is set',
    ])
    const needsCa = 'CASSANDRA_TLS_CA (a file) is required if CASSANDRA_TLS_CERT is set'
    expect(tls?.findProblems({ CASSANDRA_TLS_CERT: pem, CASSANDRA_TLS_KEY: pem })).toEqual([
      needsCa,
      expect.stringMatching(/^CASSANDRA_TLS_KEY must be the key of CASSANDRA_TLS_CERT: /),
    ])
    expect(tls?.findProblems({ CASSANDRA_TLS_CA: pem })).toEqual([
      expect.stringMatching(/^CASSANDRA_TLS_CA must contain valid certificates: /),
    ])
  })

  test.each(['CA', 'CERT', 'KEY'])(
    'an unreadable file of CASSANDRA_TLS_%s is found once',
    (name) => {
      const files = { CASSANDRA_TLS_CA: pem, CASSANDRA_TLS_CERT: pem, CASSANDRA_TLS_KEY: pem }
      const problems = tls?.findProblems({ ...files, [`CASSANDRA_TLS_${name}`]: '/nowhere' })
      const unreadable = `CASSANDRA_TLS_${name} must name a readable file in PEM`
      expect(problems?.filter((problem) => problem.endsWith('/nowhere'))).toEqual([
        `${unreadable}: current value is /nowhere`,
      ])
    },
  )
})

describe('CASSANDRA_REPLICATION', () => {
  const parse = (value?: string) => replicationSetting.schema.safeParse(value)

  test('is a list of data centers with their replicas', () => {
    expect(parse('dc1:3, dc-2:1')).toMatchObject({
      data: [
        { dc: 'dc1', replicas: 3 },
        { dc: 'dc-2', replicas: 1 },
      ],
    })
    expect(parse()).toMatchObject({ success: true, data: undefined })
  })

  test('has 1 to 9 replicas in each data center', () => {
    expect(parse('dc1:1,dc2:9').success).toBe(true)
  })

  test.each([
    'dc1',
    'dc1:0',
    'dc1:10',
    'dc1:3,dc1:3',
    "d':3",
    'dc1:3:3',
    ':3',
    'dc1:3.0',
    'dc1: 3',
  ])('rejects %j', (value) => {
    expect(parse(value).success).toBe(false)
  })
})
