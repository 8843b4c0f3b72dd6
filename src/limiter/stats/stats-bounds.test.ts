// The edges of the statistics: full tables, equal values, and values in another order.
import { describe, expect, test } from '@jest/globals'
import { rulesOf } from '../../../test/kit/rules-file.ts'
import { planChecks } from '../../limits/plan-checks.ts'
import type { Rule } from '../../limits/rule.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { AuditCounts, parseAuditCounts } from './audit-counts.ts'
import { FrequentKeys } from './frequent-keys.ts'
import { logDenied } from './record-decisions.ts'
import { connectMetrics } from './render-stats.ts'
import { RuleStats, sanitizedPathOf } from './rule-stats.ts'
import { Timings } from './timings.ts'
import { TopValues } from './top-values.ts'

const ruleOf = (identity: number) => ({ identity: `${identity}` }) as Rule

describe('audited hits', () => {
  test('of 0 or less are not counted', () => {
    const counts = new AuditCounts()
    for (const hits of [0, -1]) counts.count(ruleOf(1), hits)
    expect(counts.take()).toEqual([])
  })

  test('of a rule that is counted are added even if the table is full', () => {
    const counts = new AuditCounts()
    for (let at = 0; at < 10_000; at++) counts.count(ruleOf(at), 1)
    for (const at of [0, 10_000]) counts.count(ruleOf(at), 4)
    const hits = (parseAuditCounts(counts.take()) ?? []).map((one) => one.hits)
    expect([hits[0], hits[1], hits.length]).toEqual([5, 1, 1000])
  })

  test.each(['x'.repeat(21), 'x'.repeat(23), ` ${'x'.repeat(22)}`, '!'.repeat(22)])(
    'of the identifier %j are malformed',
    (id) => {
      expect(parseAuditCounts([`${id}=1`])).toBeUndefined()
    },
  )
  test.each(['01', '1x', '1 ', '12345678901234567'])(
    'with the number %j are malformed',
    (number) => {
      expect(parseAuditCounts([`${'x'.repeat(22)}=${number}`])).toBeUndefined()
    },
  )
})

test('times are summarized in any order', () => {
  const times = new Timings()
  for (const ms of [100, 9, 20, 3]) times.observe(ms)
  expect(times.summary()).toEqual({ count: 4, mean: 33, p50: 9, p99: 100, max: 100 })
  expect(times.since(7)).toEqual({ values: [], total: 0 })
})

describe('frequent keys', () => {
  const open = (keysMax: number, ...randoms: readonly number[]) => {
    const rest = [...randoms]
    const random = () => rest.shift() ?? NaN
    return new FrequentKeys({ keysMax, random, createItem: (source: string) => source })
  }
  const once = { hits: 1, denied: 0 }

  test('a new key replaces the one with the fewest hits of four random ones', () => {
    const keys = open(4, ...[0.3, 0, 0.55, 0.3], 0)
    for (const [key, hits] of Object.entries({ a: 9, b: 7, c: 3, d: 1 }))
      keys.record(key, '', { hits, denied: 0 })
    keys.record('e', '', once)
    const hitsByKey = keys.top(9).map(({ key, hits }) => [key, hits])
    expect(hitsByKey).toEqual([
      ['a', 9],
      ['b', 7],
      ['e', 4],
      ['d', 1],
    ])
  })

  test('a new key replaces one with as many hits in half of the cases', () => {
    const replaced = [0.49, 0.5].map((admission) => {
      const keys = open(1, 0, 0, 0, 0, admission)
      for (const key of ['a', 'b']) keys.record(key, '', once)
      return keys.top(1)[0]?.key
    })
    expect(replaced).toEqual(['b', 'a'])
  })

  test('a replaced key is new when it is hit', () => {
    const keys = open(1, ...[0, 0, 0, 0, 0], ...[0, 0, 0, 0, 0])
    for (const key of ['a', 'b', 'a']) keys.record(key, `item ${key}`, once)
    expect(keys.top(9)).toEqual([{ key: 'a', item: 'item a', hits: 3, denied: 0 }])
  })
})

describe('top values', () => {
  const keys = Array.from({ length: 111 }, (_, at) => `k${at}`)
  const descriptors = keys.map((key) => `- {key: ${key}, rate_limit: {unit: day}}`).join('\n')
  const rules = rulesOf(`domain: d\ndescriptors:\n${descriptors}\n`)
  const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
  const open = () => {
    const top = new TopValues({ random: () => 0.99, nowMs: 0 })
    const record = (key: string, value: string, admitted = true) => {
      const request = { domain: 'd', descriptors: [{ entries: [{ key, value }] }], hits: 1 }
      for (const check of planChecks(rules, request, options).checks) top.record(check, admitted)
    }
    return { top, record }
  }

  test('are counted for at most 110 rules', () => {
    const { top, record } = open()
    for (const key of keys) record(key, 'v')
    record('k0', 'v')
    const found = top.read(1)[0]?.top ?? []
    expect([found.length, found[0]?.hits, found.at(-1)?.rule]).toEqual([110, 2, 'd.k109'])
  })

  test('of the first 10 rules are tracked for 1000 keys, of later ones for 100', () => {
    const { top, record } = open()
    for (const key of keys.slice(0, 11)) record(key, 'v0')
    for (const [key, count] of [['k9', 1000] as const, ['k10', 100] as const]) {
      for (let at = 1; at < count; at++) record(key, `v${at}`)
      for (const value of [`v${count - 1}`, 'beyond', 'beyond']) record(key, value)
    }
    const found = top.read(1)[0]?.top.filter(({ hits }) => hits > 1) ?? []
    expect(found.map(({ rule, values, hits }) => [rule, values[0], hits])).toEqual([
      ['d.k9', 'v999', 2],
      ['d.k10', 'v99', 2],
    ])
  })

  test('20 denied ones have a log line each, and no others are counted', () => {
    const { top, record } = open()
    for (let at = 0; at < 20; at++) record('k0', `v${at}`, false)
    const lines: unknown[] = []
    logDenied(top.endMinute(1), { info: (_: unknown, line: unknown) => lines.push(line) } as never)
    expect(lines).toEqual(Array<string>(20).fill('hits denied in the last minute'))
  })
})

test.each([
  ['d.v_192.168.100.200', 'd.v_192_168_100_200'],
  ['d.v_1.2.3.4', 'd.v_1_2_3_4'],
  ['d.v_1.2.3', 'd.v_1.2.3'],
  ['d.v_1.1234.1.1', 'd.v_1.1234.1.1'],
  ['d.v_1.1.1234.1', 'd.v_1.1.1234.1'],
  ['d.v_1x2x3x4', 'd.v_1x2x3x4'],
  ['1.1.1.1.k_2.2.2.2', '1_1_1_1.k_2_2_2_2'],
])('the path %s is exported as %s', (path, sanitized) => {
  expect(sanitizedPathOf(path)).toBe(sanitized)
})

test('each statistic has its own metric', async () => {
  const stats = new RuleStats({ nearLimitRatio: 0.5 })
  const metrics = createMetrics()
  connectMetrics(stats, metrics)
  const hit = { hits: 8, admitted: true, remaining: 1, over: 0, capacity: 10 }
  const flags = { isShadow: false, isFromDenyCache: false }
  stats.countersOf('d').record({ ...hit, ...flags })
  stats.countersOf('d').record({ ...hit, hits: 3, admitted: false, over: 2, ...flags })
  stats.countersOf('d').record({ ...hit, admitted: false, isShadow: true, isFromDenyCache: true })
  stats.countUnknownDomain('none')
  Object.assign(stats.service, { configLoadSuccess: 2, configLoadError: 3, globalShadowMode: 4 })
  Object.assign(stats.service, { serviceError: 6, totalRequests: 7 })
  const page = await metrics.registry.metrics()
  const values = page.split('\n').filter((line) => /^ratelimit_.* [1-9]\d*$/.test(line))
  const labels = '{domain="d",key1="",key2="",rule="d"}'
  const rate = 'ratelimit_service_rate_limit'
  expect(values).toHaveLength(12)
  expect(values).toEqual(
    expect.arrayContaining([
      `${rate}_total_hits${labels} 19`,
      `${rate}_over_limit${labels} 10`,
      `${rate}_near_limit${labels} 5`,
      `${rate}_over_limit_with_local_cache${labels} 8`,
      `${rate}_within_limit${labels} 8`,
      `${rate}_shadow_mode${labels} 8`,
      `${rate}_domain_not_found{domain="none"} 1`,
      'ratelimit_service_config_load_success 2',
      'ratelimit_service_config_load_error 3',
      'ratelimit_service_global_shadow_mode 4',
      'ratelimit_service_should_rate_limit_error{err_type="service_error"} 6',
      expect.stringMatching(/total_requests\{grpc_method="ShouldRateLimit"\} 7$/),
    ]),
  )
})
