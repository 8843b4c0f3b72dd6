// Redis's settings: the names of envoyproxy/ratelimit, and one line per problem.
import { expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import { parseConfig } from '../../config/config.ts'
import { planRedis, redisSettings } from './settings.ts'

const plan = (env: Record<string, string>) => planRedis(parseConfig(redisSettings, env))

const problemsOf = (env: Readonly<Record<string, string>>) => configProblems(() => plan(env))

test('the settings of an existing envoyproxy/ratelimit are accepted', () => {
  const env = { REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: 'redis:6379', REDIS_TYPE: 'single' }
  expect(plan({ ...env, REDIS_AUTH: 'secret', CACHE_KEY_PREFIX: 'p' })).toEqual({
    main: {
      target: { kind: 'single', host: 'redis', port: 6379 },
      auth: { password: 'secret' },
      sentinelAuth: undefined,
      tls: undefined,
      database: 0,
      timeoutMs: 1000,
    },
    perSecond: undefined,
    keyPrefix: 'p',
  })
})

test('a second Redis for limits per second has its own settings', () => {
  const { main, perSecond } = plan({
    REDIS_URL: 'rediss://a',
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_TYPE: ' Sentinel ',
    REDIS_PERSECOND_URL: 'm,b:1',
    REDIS_PERSECOND_AUTH: 'user:pass:word',
    REDIS_PERSECOND_SENTINEL_AUTH: 'watcher',
    REDIS_PERSECOND_TIMEOUT: '250ms',
    REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: '1',
  })
  expect(main.tls).toMatchObject({ isHostChecked: false })
  expect(perSecond).toMatchObject({
    target: { kind: 'sentinel', masterName: 'm', sentinels: [{ host: 'b', port: 1 }] },
    auth: { username: 'user', password: 'pass:word' },
    sentinelAuth: { password: 'watcher' },
    tls: undefined,
    timeoutMs: 250,
  })
})

test('every problem has one line without secrets', () => {
  expect(problemsOf({})).toEqual([
    'REDIS_URL is required: host:port, or redis://[user:password@]host[:port][/database], ' +
      'or rediss://…, or the path of a unix socket, starting with /',
  ])
  expect(problemsOf({ REDIS_TYPE: 'ring', REDIS_TLS: 'yes', REDIS_TIMEOUT: '3' })).toEqual([
    'REDIS_TYPE must be one of SINGLE, SENTINEL, CLUSTER: current value is "ring"',
    expect.stringMatching(/^REDIS_TLS must be true or false.*: current value is "yes"$/),
    expect.stringMatching(/^REDIS_TIMEOUT must be .*: current value is "3"$/),
  ])
  expect(problemsOf({ REDIS_URL_FILE: '/nowhere' })).toEqual([
    'REDIS_URL_FILE must name a readable file: current value is /nowhere',
  ])
  const noPem = import.meta.filename
  const nodes = 'a list of nodes, as in host:port,host:port'
  const secret = {
    REDIS_URL: 'redis://:hunter2@h:1',
    REDIS_AUTH: 'hunter2',
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_TYPE: 'CLUSTER',
    REDIS_PERSECOND_URL: 'redis://:hunter2@',
    REDIS_TLS_CACERT: '/nowhere',
    REDIS_TLS_CLIENT_KEY: noPem,
  }
  expect(problemsOf(secret)).toEqual([
    'REDIS_TLS_CLIENT_CERT (a file) is required if REDIS_TLS_CLIENT_KEY is set',
    'REDIS_TLS_CACERT must name a readable file in PEM: current value is /nowhere',
    `REDIS_TLS_CLIENT_KEY must name a readable file in PEM: current value is ${noPem}`,
    'REDIS_AUTH is set, and REDIS_URL also contains a password: remove one',
    `REDIS_PERSECOND_URL must be ${nodes}: current value is hidden`,
  ])
})
