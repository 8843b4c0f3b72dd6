// The reference's settings: defaults, forms of values, and a sentence for what we do not do.
import { describe, expect, test } from '@jest/globals'
import { ConfigError, type Environment, parseConfig, type Settings } from '../../config/config.ts'
import { refusedSettings } from './refused-settings.ts'
import {
  answerSettings,
  limitSettings,
  logSettings,
  ruleFileSettings,
  statisticsSettings,
  tracingSettings,
} from './settings.ts'

const all = {
  ...ruleFileSettings,
  ...limitSettings,
  ...answerSettings,
  ...statisticsSettings,
  ...logSettings,
  ...tracingSettings,
  ...refusedSettings,
} as const

function faultsOf(env: Environment): readonly string[] {
  try {
    parseConfig(all, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

test('an empty environment gives the reference’s defaults', () => {
  expect(parseConfig(all, {})).toMatchObject({
    RUNTIME_ROOT: '/srv/runtime_data/current',
    RUNTIME_SUBDIRECTORY: '',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_WATCH_ROOT: true,
    RUNTIME_IGNOREDOTFILES: false,
    NEAR_LIMIT_RATIO: 0.8,
    LOCAL_CACHE_SIZE_IN_BYTES: 0,
    LIMIT_LIMIT_HEADER: 'RateLimit-Limit',
    LIMIT_REMAINING_HEADER: 'RateLimit-Remaining',
    LIMIT_RESET_HEADER: 'RateLimit-Reset',
    LIMIT_RESPONSE_HEADERS_ENABLED: false,
    USE_STATSD: true,
    STATSD_HOST: 'localhost',
    STATSD_PORT: 8125,
    STATS_FLUSH_INTERVAL: 10_000,
    EXTRA_TAGS: new Map(),
    USE_PROMETHEUS: false,
    PROMETHEUS_ADDR: { host: undefined, port: 9090 },
    PROMETHEUS_PATH: '/metrics',
    LIMIT_REPLICAS: 1,
    LIMIT_DEADLINE_MS: 15,
    LOG_LEVEL: 'info',
  })
})

test('the environment of the reference’s own examples is taken', () => {
  const env = {
    USE_STATSD: 'true',
    STATSD_HOST: 'statsd',
    STATSD_PORT: '9125',
    LOG_LEVEL: 'debug',
    RUNTIME_ROOT: '/data',
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    CONFIG_TYPE: 'FILE',
    RESPONSE_DYNAMIC_METADATA: 'true',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'True',
    TRACING_ENABLED: '0',
    BACKEND_TYPE: 'redis',
    USE_DOG_STATSD: 'false',
  }
  expect(parseConfig(all, env)).toMatchObject({
    STATSD_HOST: 'statsd',
    RUNTIME_WATCH_ROOT: false,
    LIMIT_RESPONSE_HEADERS_ENABLED: true,
  })
})

test('what needs memcache, xDS or DogStatsD stops the start, a sentence each', () => {
  const env = {
    BACKEND_TYPE: 'memcache',
    MEMCACHE_HOST_PORT: 'localhost:11211',
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: 'xds:18000',
    USE_DOG_STATSD: 'true',
    STATSD_PROTOCOL: 'udp',
  }
  const faults = faultsOf(env)
  expect(faults).toHaveLength(6)
  for (const name of Object.keys(env)) {
    const fault = faults.find((line) => line.startsWith(`${name} must be `))
    expect([name, fault]).toEqual([name, expect.stringMatching(/, since .*: current value is "/)])
  }
})

test.each(Object.keys(refusedSettings))('%s cannot be set', (name) => {
  expect(faultsOf({ [name]: 'true' })).toHaveLength(1)
  expect(faultsOf({ [name]: '' })).toEqual([])
})

describe('flags', () => {
  test.each(['1', 't', 'T', 'TRUE', 'true', 'True'])('%s is on', (SHADOW_MODE) => {
    expect(parseConfig(limitSettings, { SHADOW_MODE }).SHADOW_MODE).toBe(true)
  })
  test.each(['0', 'f', 'F', 'FALSE', 'false', 'False'])('%s is off', (USE_STATSD) => {
    expect(parseConfig(statisticsSettings, { USE_STATSD }).USE_STATSD).toBe(false)
  })
  test.each(['yes', 'tRUE', '2', ' true', 'on'])('%j is a fault', (SHADOW_MODE) => {
    expect(faultsOf({ SHADOW_MODE })).toHaveLength(1)
  })
})

describe('values', () => {
  const ok = (env: Environment) => parseConfig(all, env)

  test.each(['0', '1', '0.8', '.5', '1.'])('NEAR_LIMIT_RATIO=%s', (NEAR_LIMIT_RATIO) => {
    expect(ok({ NEAR_LIMIT_RATIO }).NEAR_LIMIT_RATIO).toBe(Number(NEAR_LIMIT_RATIO))
  })
  test.each(['1.01', '-0.1', '8e-1', '.', 'NaN', '0,8'])(
    'NEAR_LIMIT_RATIO=%s is a fault',
    (NEAR_LIMIT_RATIO) => {
      expect(faultsOf({ NEAR_LIMIT_RATIO })).toHaveLength(1)
    },
  )

  test.each([
    ['DEBUG', 'debug'],
    ['Warning', 'warn'],
    ['panic', 'fatal'],
    ['trace', 'trace'],
  ])('LOG_LEVEL=%s', (LOG_LEVEL, level) => {
    expect(ok({ LOG_LEVEL }).LOG_LEVEL).toBe(level)
  })

  test.each([
    ['a:b', [['a', 'b']]],
    [
      'env:prod,zone:a:1',
      [
        ['env', 'prod'],
        ['zone', 'a:1'],
      ],
    ],
    ['a:', [['a', '']]],
  ] as const)('EXTRA_TAGS=%s', (EXTRA_TAGS, tags) => {
    expect([...ok({ EXTRA_TAGS }).EXTRA_TAGS]).toEqual(tags)
  })
  test.each(['a', ':b', 'a:b,', 'a b:c', 'a:b\nc:d'])('EXTRA_TAGS=%j is a fault', (EXTRA_TAGS) => {
    expect(faultsOf({ EXTRA_TAGS })).toHaveLength(1)
  })

  test.each([
    [':9090', undefined, 9090],
    ['0.0.0.0:1', '0.0.0.0', 1],
    ['[::1]:9102', '::1', 9102],
    ['localhost:0', 'localhost', 0],
  ])('PROMETHEUS_ADDR=%s', (PROMETHEUS_ADDR, host, port) => {
    expect(ok({ PROMETHEUS_ADDR }).PROMETHEUS_ADDR).toEqual({ host, port })
  })
  test.each(['9090', ':99999', '::1:9090', 'a b:1', ':'])(
    'PROMETHEUS_ADDR=%j is a fault',
    (PROMETHEUS_ADDR) => {
      expect(faultsOf({ PROMETHEUS_ADDR })).toHaveLength(1)
    },
  )

  test('paths stay below what they are joined to', () => {
    expect(
      faultsOf({ RUNTIME_SUBDIRECTORY: '../etc', RUNTIME_APPDIRECTORY: 'a/../..' }),
    ).toHaveLength(2)
    expect(ok({ RUNTIME_SUBDIRECTORY: '/ratelimit/' }).RUNTIME_SUBDIRECTORY).toBe('ratelimit')
  })

  test('a header’s name is one', () => {
    expect(faultsOf({ LIMIT_LIMIT_HEADER: 'a b', LIMIT_RESET_HEADER: 'x\r\ny: z' })).toHaveLength(2)
  })
})

test('every setting says what it is for, what it takes and what holds without it', () => {
  const settings: Settings = all
  for (const [name, { about, allowed, fallback }] of Object.entries(settings))
    expect([name, about, allowed, fallback].every((text) => text.length > 0)).toBe(true)
})
