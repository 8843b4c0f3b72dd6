// The bounds and the syntax of single settings of the role `ratelimit`.
import { describe, expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../../config/config.ts'
import { algorithms } from '../../limits/algorithms.ts'
import {
  limitSettings,
  rateLimitLogLevelSetting,
  responseSettings,
  ruleFileSettings,
  statisticsSettings,
  topValuesSettings,
} from './settings.ts'
import { ignoredSettings, unsupportedSettings } from './unsupported-settings.ts'

const all = {
  ...{ ...ruleFileSettings, ...limitSettings, ...responseSettings, ...topValuesSettings },
  ...{ ...statisticsSettings, LOG_LEVEL: rateLimitLogLevelSetting },
  ...{ ...ignoredSettings, ...unsupportedSettings },
} as const

/** The value of a setting, or `rejected`. */
function valueOf(name: keyof typeof all, value: string): unknown {
  try {
    return parseConfig(all, { [name]: value })[name]
  } catch (error) {
    if (error instanceof ConfigError && error.message.startsWith(`${name} must be`))
      return 'rejected'
    throw error
  }
}

test('the defaults of other settings', () => {
  expect(parseConfig(all, {})).toMatchObject({
    ...{ CONFIG_TYPE: 'FILE', MERGE_DOMAIN_CONFIG: false, REQUIRED_DOMAIN: '', RULES_COPY: '' },
    ...{ FORCE_START_WITHOUT_INITIAL_CONFIG: false, XDS_FALLBACK_VERSION: '' },
    ...{ HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: false, BACKEND_TYPE: 'redis' },
    ...{ DEFAULT_ALGORITHM: 'fixed_window', SHADOW_MODE: false, QUOTA_MODE: false },
    ...{ STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: false, RESPONSE_DYNAMIC_METADATA: false },
    ...{ LIMIT_METADATA: true, LIMIT_TOP_VALUES: true, DISABLE_STATS: false },
    ...{ STATSD_PROTOCOL: 'tcp', EXPIRATION_JITTER_MAX_SECONDS: 300, REDIS_POOL_SIZE: 10 },
    ...{ REDIS_PIPELINE_LIMIT: 0, REDIS_CLUSTER_PIPELINE_PARALLELISM: 1 },
    ...{ MEMCACHE_SRV: undefined, USE_DOG_STATSD: undefined },
  })
  expect(ruleFileSettings.RUNTIME_SUBDIRECTORY.fallback).toBe('none')
  expect(ruleFileSettings.RUNTIME_APPDIRECTORY.fallback).toBe('config')
})

test.each(algorithms)('DEFAULT_ALGORITHM may be $name', ({ name }) => {
  expect(valueOf('DEFAULT_ALGORITHM', name)).toBe(name)
})

test.each([
  ['DEFAULT_ALGORITHM', 'bucket'],
  ['CONFIG_TYPE', 'HTTP'],
  ['LOG_LEVEL', 'verbose'],
  ['LOG_LEVEL', 'warnings'],
] as const)('%s=%s is rejected', (name, value) => {
  expect(valueOf(name, value)).toBe('rejected')
})

test.each([
  ['LOCAL_CACHE_SIZE_IN_BYTES', 0, 999_999_999],
  ['LIMIT_REPLICAS', 1, 10_000],
  ['LIMIT_DEADLINE_MS', 1, 60_000],
  ['EXPIRATION_JITTER_MAX_SECONDS', 0, 999_999_999],
  ['REDIS_POOL_SIZE', 1, 999_999],
  ['REDIS_PIPELINE_LIMIT', 0, 999_999],
  ['REDIS_CLUSTER_PIPELINE_PARALLELISM', 0, 999_999],
  ['STATSD_PORT', 0, 65_535],
] as const)('%s is an integer from %i to %i', (name, min, max) => {
  const values = [min - 1, min, max, max + 1].map((value) => valueOf(name, String(value)))
  expect(values).toEqual(['rejected', min, max, 'rejected'])
})

test.each([
  ['100ms', 100],
  ['1h', 3_600_000],
  ['99ms', 'rejected'],
  ['3601s', 'rejected'],
])('STATS_FLUSH_INTERVAL=%s', (duration, expected) => {
  expect(valueOf('STATS_FLUSH_INTERVAL', duration)).toBe(expected)
})

test.each(['0', 'f', 'F', 'FALSE', 'false', 'False'])('USE_DOG_STATSD may be %s', (value) => {
  expect(valueOf('USE_DOG_STATSD', value)).toBeUndefined()
})

describe('paths', () => {
  test.each([
    ['a/b', 'a/b'],
    ['//a//b//', 'a//b'],
    ['a..b', 'a..b'],
    ['..', 'rejected'],
    ['a/..', 'rejected'],
    ['/', ''],
  ])('RUNTIME_APPDIRECTORY=%s', (path, expected) => {
    expect(valueOf('RUNTIME_APPDIRECTORY', path)).toBe(expected)
  })

  test.each(['/', '/a', '/a/~b!', `/${'a'.repeat(200)}`])('PROMETHEUS_PATH=%s', (path) => {
    expect(valueOf('PROMETHEUS_PATH', path)).toBe(path)
  })
  test.each(['a', 'a/b', '/a b', '/a\u007f', `/${'a'.repeat(201)}`])(
    'PROMETHEUS_PATH=%j is rejected',
    (path) => {
      expect(valueOf('PROMETHEUS_PATH', path)).toBe('rejected')
    },
  )
})

test.each(['LIMIT_LIMIT_HEADER', 'LIMIT_REMAINING_HEADER', 'LIMIT_RESET_HEADER'] as const)(
  '%s has 1 to 100 characters of a token',
  (name) => {
    const header = "X!#$%&'*+.^_`|~-09azAZ"
    expect(valueOf(name, header)).toBe(header)
    expect(valueOf(name, 'x')).toBe('x')
    expect(valueOf(name, 'x'.repeat(100))).toBe('x'.repeat(100))
    for (const invalid of ['x'.repeat(101), ' x', 'x ', 'x:', 'é'])
      expect(valueOf(name, invalid)).toBe('rejected')
  },
)

describe('PROMETHEUS_ADDR', () => {
  test.each([
    ['h:65535', 'h', 65_535],
    [':1', undefined, 1],
    ['[::ffff:192.0.2.1]:80', '::ffff:192.0.2.1', 80],
    ['[0123456789ABCDEFabcdef:]:80', '0123456789ABCDEFabcdef:', 80],
  ])('may be %s', (address, host, port) => {
    expect(valueOf('PROMETHEUS_ADDR', address)).toEqual({ host, port })
  })
  test.each(['h:65536', ':009090', ':', ':80x', 'x[::1]:80', '[]:80', '[g]:80', 'a[b:80', 'a]:80'])(
    'cannot be %s',
    (address) => {
      expect(valueOf('PROMETHEUS_ADDR', address)).toBe('rejected')
    },
  )
})

test('EXTRA_TAGS are pairs separated by commas', () => {
  const tags = new Map([
    ['ab', 'c:d|e'],
    ['f', ''],
    ['g', 'h'],
  ])
  expect(valueOf('EXTRA_TAGS', 'ab:c:d|e,f:,g:h')).toEqual(tags)
  for (const invalid of ['a|b:c', 'a:b,c|d:e', 'a:b,:c', 'a:b,c', ',a:b', 'a:b,c d:e', 'a:b c'])
    expect(valueOf('EXTRA_TAGS', invalid)).toBe('rejected')
})
