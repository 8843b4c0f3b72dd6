// RateLimitConfigs of an xDS server have the meaning of the same rules in a file; each fault shows
// its path in the message.
import { describe, expect, test } from '@jest/globals'
import {
  configBytes,
  type ConfigMessage,
  type DescriptorMessage,
  structOf,
} from '../../test/kit/ratelimit/xds-messages.ts'
import { createRandom } from '../../test/kit/random.ts'
import { renderFault } from './rule-fault.ts'
import { listRules } from './rule-tree.ts'
import { parseRules } from './parse-rules.ts'

const options = { mergeDomains: false }

function parse(configs: readonly (ConfigMessage | Buffer)[], more = {}) {
  const resources = configs.map((config, index) => ({
    index,
    bytes: Buffer.isBuffer(config) ? config : configBytes(config),
  }))
  return parseRules(resources, { ...options, ...more })
}

const parseYaml = (text: string) => parseRules([{ name: 'rules.yaml', text }], options)

function rulesOf(parsed: ReturnType<typeof parse>) {
  if ('faults' in parsed) throw new Error(parsed.faults.map(renderFault).join('\n'))
  return listRules(parsed.rules)
}

function faultsOf(...configs: readonly (ConfigMessage | Buffer)[]) {
  const parsed = parse(configs)
  return 'faults' in parsed ? parsed.faults.map(renderFault) : []
}

const shop = (...descriptors: readonly DescriptorMessage[]): ConfigMessage => ({
  name: 'shop',
  domain: 'shop',
  descriptors,
})
const perMinute = { unit: 'MINUTE', requestsPerUnit: 3 }
const own = (fields: Readonly<Record<string, unknown>>, more = {}) => ({
  metadata: structOf({ ...more, 'curtail.dev': fields }),
})

describe('a message equals a file:', () => {
  test('every field', () => {
    const config = shop(
      {
        key: 'path',
        value: '/a*',
        rateLimit: { ...perMinute, name: 'x', replaces: [{ name: 'y' }] },
        shadowMode: true,
        detailedMetric: true,
        metadata: structOf({ tier: 'gold', list: [1, 0.5, null, { deep: true }] }),
        descriptors: [{ key: 'client', rateLimit: { unit: 'WEEK', requestsPerUnit: 1 } }],
      },
      { key: 'path', value: '/b', rateLimit: { unlimited: true } },
      { key: 'path', rateLimit: { unit: 'YEAR', requestsPerUnit: 4_294_967_295 }, quotaMode: true },
    )
    const yaml = `
domain: shop
descriptors:
  - key: path
    value: /a*
    rate_limit: {unit: minute, requests_per_unit: 3, name: x, replaces: [{name: y}]}
    shadow_mode: true
    detailed_metric: true
    metadata: {tier: gold, list: [1, 0.5, null, {deep: true}]}
    descriptors:
      - {key: client, rate_limit: {unit: week, requests_per_unit: 1}}
  - {key: path, value: /b, rate_limit: {unlimited: true}}
  - {key: path, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 4294967295}}
`
    expect(rulesOf(parse([config]))).toEqual(rulesOf(parseYaml(yaml)))
  })

  test('the fields in the metadata, which responses do not return', () => {
    const config = shop(
      {
        key: 'client',
        rateLimit: perMinute,
        ...own({ rate_limit: { algorithm: 'token_bucket', burst: 20 } }, { tier: 'gold' }),
      },
      { key: 'window', rateLimit: perMinute, ...own({ rate_limit: { window: '30s' } }) },
      { key: 'hidden', rateLimit: perMinute, ...own({ hashed: true }) },
      {
        key: 'several',
        rateLimit: perMinute,
        ...own({
          hashed: true,
          rate_limits: [
            { unit: 'second', requests_per_unit: 5, on_store_error: 'deny' },
            { unit: 'day', requests_per_unit: 100 },
          ],
        }),
      },
    )
    const yaml = `
domain: shop
descriptors:
  - key: client
    metadata: {tier: gold}
    rate_limit: {algorithm: token_bucket, unit: minute, requests_per_unit: 3, burst: 20}
  - {key: window, rate_limit: {window: 30s, requests_per_unit: 3}}
  - {key: hidden, hashed: true, rate_limit: {unit: minute, requests_per_unit: 3}}
  - key: several
    hashed: true
    rate_limits:
      - {unit: second, requests_per_unit: 5, on_store_error: deny}
      - {unit: day, requests_per_unit: 100}
`
    expect(rulesOf(parse([config]))).toEqual(rulesOf(parseYaml(yaml)))
  })

  test('null in the metadata sets nothing', () => {
    const nulls = [
      { rate_limit: null },
      { rate_limits: null },
      { rate_limit: { requests_per_unit: null, unit: null } },
      { hashed: null, rate_limit: {} },
    ]
    const plain = rulesOf(parse([shop({ key: 'k', rateLimit: perMinute })]))
    const none = { metadata: structOf({ 'curtail.dev': null }) }
    for (const metadata of [none, ...nulls.map((fields) => own(fields))]) {
      const config = shop({ key: 'k', rateLimit: perMinute, ...metadata })
      expect(rulesOf(parse([config]))).toEqual(plain)
    }
    const limits = [{ unit: 'minute', window: null, requests_per_unit: 3 }]
    expect(rulesOf(parse([shop({ key: 'k', ...own({ rate_limits: limits }) })]))).toEqual(plain)
  })

  test('a bool has 64 bits', () => {
    const policy = [10, 1, 107, 26, 7, 24, 128, 128, 128, 128, 128, 1] // unlimited: 2 ** 35
    const bytes = Buffer.from([18, 1, 115, 26, policy.length, ...policy])
    expect(rulesOf(parse([bytes]))).toMatchObject([{ limit: undefined, unit: undefined }])
  })

  test('a limit of 0 requests denies; an empty version has no rules', () => {
    const [rule] = rulesOf(parse([shop({ key: 'k', rateLimit: { unit: 'SECOND' } })]))
    expect(rule?.limit?.requests).toBe(0)
    expect(rulesOf(parse([]))).toEqual([])
  })

  test('a limit that is sent twice is merged, as protobuf requires', () => {
    const descriptor = (fields: object) =>
      configBytes(shop({ key: 'k', rateLimit: fields })).subarray(-4, undefined)
    // key: 'k', rate_limit {unit: MINUTE}, rate_limit {requests_per_unit: 3}
    const merged = Buffer.from([10, 1, 107, ...descriptor({ unit: 'MINUTE' })])
    const limits = Buffer.concat([merged, descriptor({ requestsPerUnit: 3 })])
    const bytes = Buffer.concat([Buffer.from([18, 1, 115, 26, limits.length]), limits])
    expect(rulesOf(parse([bytes]))[0]?.limit).toMatchObject({ requests: 3, windowUs: 60_000_000 })
  })

  test('metadata that is sent twice is merged, as protobuf requires', () => {
    const field = (tag: number, ...contents: readonly (string | Buffer)[]) => {
      const bytes = Buffer.concat(contents.map((each) => Buffer.from(each)))
      return Buffer.concat([Buffer.from([tag, bytes.length | 128, bytes.length >>> 7]), bytes])
    }
    const [key, string, list, struct] = [10, 26, 50, 42]
    const value = (name: string, ...values: readonly Buffer[]) =>
      field(10, field(key, name), ...values.map((each) => field(18, each)))
    const item = (name: string) => field(10, field(string, name))
    const descriptor = [
      field(key, 'k'),
      field(66, value('a', field(string, '1')), value('b', field(string, '1'))),
      field(66, value('b', field(string, '2'))), // the last value of a key
      field(66, value('c', field(list, item('1')), field(list, item('2')))), // lists are joined
      field(
        66,
        value('d', field(struct, value('x', field(string, '1'))), field(struct, value('y'))),
      ),
      field(66, value('e', field(list, item('1')), field(string, '2'), field(list, item('3')))),
      field(66, value('f', field(struct, value('x')), field(list))), // the last kind
      field(26, Buffer.from([8, 2, 16, 3])), // rate_limit {unit: MINUTE, requests_per_unit: 3}
    ]
    const [rule] = rulesOf(parse([Buffer.concat([field(18, 's'), field(26, ...descriptor)])]))
    expect(rule?.metadata).toEqual({
      a: '1',
      b: '2',
      c: ['1', '2'],
      d: { x: '1', y: null },
      e: ['3'],
      f: [],
    })
  })
})

describe('a fault names the resource and the path:', () => {
  const inner = (fields: DescriptorMessage) =>
    shop({ key: 'a' }, { key: 'b', descriptors: [{ key: 'c', ...fields }] })
  const at = 'resource "shop": descriptors[1].descriptors[0]'
  const several = { unit: 'day', requests_per_unit: 1 }

  test.each<[string, DescriptorMessage, string]>([
    [
      'unit',
      { rateLimit: { requestsPerUnit: 1 } },
      `.rate_limit: invalid rate limit unit 'UNKNOWN'`,
    ],
    ['unknown unit', { rateLimit: { unit: 9 } }, `.rate_limit: invalid rate limit unit '9'`],
    [
      'our algorithm',
      { rateLimit: perMinute, ...own({ rate_limit: { algorithm: 'x' } }) },
      '.metadata["curtail.dev"].rate_limit: algorithm must be one of',
    ],
    [
      'an unknown name',
      own({ rate_limt: {} }),
      `.metadata["curtail.dev"]: config error, unknown key 'rate_limt'`,
    ],
    ['a field of the message', own({ key: 'x' }), '.metadata["curtail.dev"]: curtail.dev must not'],
    [
      'a limit that is no object',
      { rateLimit: perMinute, ...own({ rate_limit: 5 }) },
      '.metadata["curtail.dev"]: error loading config file: rate_limit must be a mapping',
    ],
    ['no object', { metadata: structOf({ 'curtail.dev': 1 }) }, '.metadata: curtail.dev must be'],
    [
      'replaces',
      { rateLimit: { ...perMinute, replaces: [{ name: 'x' }, {}] } },
      '.rate_limit.replaces[1]: should not have an empty replaces entry',
    ],
    [
      'rate_limit and rate_limits',
      { rateLimit: perMinute, ...own({ rate_limit: { name: 'x' }, rate_limits: [several] }) },
      '.metadata["curtail.dev"].rate_limits: rate_limit and rate_limits are alternatives',
    ],
    [
      'rate_limits and rate_limit',
      { rateLimit: perMinute, ...own({ rate_limits: [several], rate_limit: { name: 'x' } }) },
      '.metadata["curtail.dev"].rate_limits: rate_limit and rate_limits are alternatives',
    ],
    ['value', { value: 'v*', key: 'c*' }, `: a key cannot contain '*'`],
  ])('%s', (_, fields, expected) => {
    expect(faultsOf(inner(fields))).toEqual([expect.stringContaining(`${at}${expected}`)])
  })

  test('of the resource itself, named or not', () => {
    expect(faultsOf(shop(), { descriptors: [] })).toEqual([
      'resources[1]: config file cannot have empty domain',
    ])
    const twice = { name: 'other', domain: 'shop' }
    expect(faultsOf(shop(), twice)).toEqual([
      `resource "other": duplicate domain 'shop' in config file`,
    ])
  })
})

test('an unknown field is a warning', () => {
  const bytes = Buffer.concat([configBytes(shop({ key: 'k' })), Buffer.from([72, 1])])
  const parsed = parse([bytes])
  expect('warnings' in parsed && parsed.warnings.map(renderFault)).toEqual([
    'resource "shop": field 9 is unknown: it is ignored',
  ])
})

test('any bytes result in rules or in faults', () => {
  const config = shop({ key: 'k', rateLimit: perMinute, ...own({ rate_limit: { burst: 1 } }) })
  const bytes = configBytes(config)
  for (let length = 0; length < bytes.length; length += 1) parse([bytes.subarray(0, length)])
  const random = createRandom(1)
  for (let run = 0; run < 2000; run += 1) {
    const damaged = Buffer.from(bytes)
    for (let flips = 0; flips < 3; flips += 1) {
      damaged[random.int(damaged.length)] = random.int(256)
    }
    const parsed = parse([damaged])
    expect('faults' in parsed || 'rules' in parsed).toBe(true)
  }
})

describe('the default algorithm', () => {
  const algorithmsOf = (config: ConfigMessage, defaultAlgorithm: string) =>
    rulesOf(parse([config], { defaultAlgorithm })).map(({ algorithm }) => algorithm.name)

  test('applies to limits that set no algorithm, if it can count them', () => {
    const config = shop(
      { key: 'a', rateLimit: perMinute },
      { key: 'b', rateLimit: { unit: 'DAY', requestsPerUnit: 10_001 } },
      { key: 'c', rateLimit: perMinute, ...own({ rate_limit: { algorithm: 'leaky_bucket' } }) },
      { key: 'd', rateLimit: { unlimited: true } },
    )
    const expected = ['sliding_window_log', 'fixed_window', 'leaky_bucket', 'fixed_window']
    expect(algorithmsOf(config, 'sliding_window_log')).toEqual(expected)
    const parsed = parse([config], { defaultAlgorithm: 'sliding_window_log' })
    expect('warnings' in parsed && parsed.warnings.map(renderFault)).toEqual([
      'resource "shop": descriptors[1].rate_limit: the default algorithm sliding_window_log ' +
        'does not support this limit: fixed_window is used',
    ])
  })

  test('allows a burst', () => {
    const config = shop({ key: 'a', rateLimit: perMinute, ...own({ rate_limit: { burst: 9 } }) })
    expect(algorithmsOf(config, 'token_bucket')).toEqual(['token_bucket'])
  })
})
