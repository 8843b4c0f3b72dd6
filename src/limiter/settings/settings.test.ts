// The settings of envoyproxy/ratelimit: defaults, accepted values, and a reason for unsupported
// features.
import { describe, expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import {
  type Environment,
  parseConfig,
  renderSettings,
  type Settings,
} from '../../config/config.ts'
import { ignoredSettings, unsupportedSettings } from './unsupported-settings.ts'
import {
  responseSettings,
  limitSettings,
  rateLimitLogLevelSetting,
  ruleFileSettings,
  statisticsSettings,
} from './settings.ts'

const all = {
  ...ruleFileSettings,
  ...limitSettings,
  ...responseSettings,
  ...statisticsSettings,
  LOG_LEVEL: rateLimitLogLevelSetting,
  ...ignoredSettings,
  ...unsupportedSettings,
} as const

const problemsOf = (env: Environment) => configProblems(() => parseConfig(all, env))

test('an empty environment results in the defaults of envoyproxy/ratelimit', () => {
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

test('accepts the environment of the examples of envoyproxy/ratelimit', () => {
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

test('settings for memcache or DogStatsD abort startup, each with a reason', () => {
  const env = {
    BACKEND_TYPE: 'memcache',
    USE_DOG_STATSD: 'true',
    STATSD_PROTOCOL: 'udp',
  }
  const problems = problemsOf(env)
  expect(problems).toHaveLength(3)
  for (const name of Object.keys(env)) {
    const problem = problems.find((line) => line.startsWith(`${name} must be `))
    expect([name, problem]).toEqual([name, expect.stringMatching(/, since .*: current value is "/)])
  }
})

test.each(Object.keys(unsupportedSettings))('%s cannot be set', (name) => {
  expect(problemsOf({ [name]: 'true' })).toHaveLength(1)
  expect(problemsOf({ [name]: '' })).toEqual([])
})

test('settings without effect are described as such', () => {
  const rendered = renderSettings(ignoredSettings)
  expect(rendered).toMatch(/REDIS_POOL_SIZE +has no effect: one connection carries all calls/)
  expect(rendered).toMatch(
    /REDIS_STARTUP_MAX_INTERVAL +has no effect: startup never waits for Redis/,
  )
})

describe('flags', () => {
  test.each(['1', 't', 'T', 'TRUE', 'true', 'True'])('%s is on', (SHADOW_MODE) => {
    expect(parseConfig(limitSettings, { SHADOW_MODE }).SHADOW_MODE).toBe(true)
  })
  test.each(['0', 'f', 'F', 'FALSE', 'false', 'False'])('%s is off', (USE_STATSD) => {
    expect(parseConfig(statisticsSettings, { USE_STATSD }).USE_STATSD).toBe(false)
  })
  test.each(['yes', 'tRUE', '2', ' true', 'on'])('%j is rejected', (SHADOW_MODE) => {
    expect(problemsOf({ SHADOW_MODE })).toHaveLength(1)
  })
})

describe('values', () => {
  const parsed = (env: Environment) => parseConfig(all, env)

  test.each(['0', '1', '0.8', '.5', '1.'])('NEAR_LIMIT_RATIO=%s', (NEAR_LIMIT_RATIO) => {
    expect(parsed({ NEAR_LIMIT_RATIO }).NEAR_LIMIT_RATIO).toBe(Number(NEAR_LIMIT_RATIO))
  })
  test.each(['1.01', '-0.1', '8e-1', '.', 'NaN', '0,8'])(
    'NEAR_LIMIT_RATIO=%s is rejected',
    (NEAR_LIMIT_RATIO) => {
      expect(problemsOf({ NEAR_LIMIT_RATIO })).toHaveLength(1)
    },
  )

  test.each([
    ['DEBUG', 'debug'],
    ['Warning', 'warn'],
    ['panic', 'fatal'],
    ['trace', 'trace'],
  ])('LOG_LEVEL=%s', (LOG_LEVEL, level) => {
    expect(parsed({ LOG_LEVEL }).LOG_LEVEL).toBe(level)
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
    expect([...parsed({ EXTRA_TAGS }).EXTRA_TAGS]).toEqual(tags)
  })
  test.each(['a', ':b', 'a:b,', 'a b:c', 'a:b\nc:d'])('EXTRA_TAGS=%j is rejected', (EXTRA_TAGS) => {
    expect(problemsOf({ EXTRA_TAGS })).toHaveLength(1)
  })

  test.each([
    [':9090', undefined, 9090],
    ['0.0.0.0:1', '0.0.0.0', 1],
    ['[::1]:9102', '::1', 9102],
    ['localhost:0', 'localhost', 0],
  ])('PROMETHEUS_ADDR=%s', (PROMETHEUS_ADDR, host, port) => {
    expect(parsed({ PROMETHEUS_ADDR }).PROMETHEUS_ADDR).toEqual({ host, port })
  })
  test.each(['9090', ':99999', '::1:9090', 'a b:1', ':'])(
    'PROMETHEUS_ADDR=%j is rejected',
    (PROMETHEUS_ADDR) => {
      expect(problemsOf({ PROMETHEUS_ADDR })).toHaveLength(1)
    },
  )

  test('paths must stay below the path they are joined to', () => {
    expect(
      problemsOf({ RUNTIME_SUBDIRECTORY: '../etc', RUNTIME_APPDIRECTORY: 'a/../..' }),
    ).toHaveLength(2)
    expect(parsed({ RUNTIME_SUBDIRECTORY: '/ratelimit/' }).RUNTIME_SUBDIRECTORY).toBe('ratelimit')
  })

  test('header names must be valid', () => {
    expect(problemsOf({ LIMIT_LIMIT_HEADER: 'a b', LIMIT_RESET_HEADER: 'x\r\ny: z' })).toHaveLength(
      2,
    )
  })
})

test('every setting has a description, allowed values and a default', () => {
  const settings: Settings = all
  for (const [name, { about, allowed, fallback }] of Object.entries(settings))
    expect([name, about, allowed, fallback].every((value) => value.length > 0)).toBe(true)
})
