// The bounds of the limiter's statistics for any requests, and the exported names.
import { beforeEach, describe, expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { OTHER_PATH, RuleStats, sanitizedPathOf } from './rule-stats.ts'
import { connectMetrics, readStats, renderStats } from './render-stats.ts'

const hit = {
  hits: 1,
  admitted: true,
  remaining: 9,
  over: 0,
  capacity: 10,
  isShadow: false,
  isFromDenyCache: false,
}

let stats: RuleStats
beforeEach(() => {
  stats = new RuleStats({ nearLimitRatio: 0.8, pathsMax: 5, domainsMax: 2 })
})

const paths = () => stats.listCounters().map(({ path }) => path)

describe('bounds', () => {
  test('a path keeps its counters; paths beyond the bound share one set', () => {
    const first = stats.countersOf('d.k_0')
    for (let i = 0; i < 1000; i++) stats.countersOf(`d.k_${i}`).record(hit)
    expect(stats.countersOf('d.k_0')).toBe(first)
    expect(paths()).toEqual(['d.k_0', 'd.k_1', 'd.k_2', 'd.k_3', 'd.k_4', OTHER_PATH])
    expect(stats.countersOf('d.k_999').total_hits).toBe(995)
  })

  test('active rules have counters, even if values of requests were counted first', () => {
    for (let i = 0; i < 10; i++) stats.countersOf(`d.k_${i}`)
    const kept = stats.countersOf('d.k_0')
    stats.declareRules(['d.a', 'd.b', 'd.c'])
    expect(paths()).toEqual(['d.a', 'd.b', 'd.c', 'd.k_0', 'd.k_1'])
    expect(stats.countersOf('d.k_0')).toBe(kept)
    expect(stats.countersOf('d.k_4').path).toBe(OTHER_PATH)
  })

  test('a reload keeps the counters of kept rules, and drops those of removed rules', () => {
    stats.declareRules(['d.a', 'd.b'])
    const stays = stats.countersOf('d.a')
    stays.record(hit)
    stats.declareRules(['d.a', 'd.c'])
    expect(stats.countersOf('d.a')).toBe(stays)
    expect(paths()).toEqual(['d.a', 'd.c'])
    expect(stats.countersOf('d.b').total_hits).toBe(0)
  })

  test('rules whose paths are sanitized keep their counters at the bound', () => {
    for (let i = 0; i < 10; i++) stats.countersOf(`d.k_${i}`)
    stats.declareRules(['d.a_1:2', 'd.b_10.0.0.1'])
    for (let i = 0; i < 10; i++) stats.countersOf(`d.k_${i}`)
    expect(stats.countersOf('d.a_1:2').path).toBe('d.a_1_2')
    expect(stats.countersOf('d.b_10.0.0.1').path).toBe('d.b_10_0_0_1')
  })

  test('rules beyond the bound share one set of counters', () => {
    stats.declareRules(Array.from({ length: 50 }, (_, i) => `d.k_${i}`))
    expect(paths()).toHaveLength(5)
    expect(stats.countersOf('d.k_49').path).toBe(OTHER_PATH)
  })

  test('long paths are truncated, and share counters if the result is equal', () => {
    const long = 'x'.repeat(1_000_000)
    const counters = stats.countersOf(`d.${long}a`)
    expect(counters.path).toHaveLength(300)
    for (let i = 0; i < 10; i++) stats.countersOf(`d.k_${i}`)
    expect(stats.countersOf(`d.${long}b`)).toBe(counters)
  })

  test('a path of 300 characters is kept, a longer one is truncated', () => {
    const path = 'x'.repeat(300)
    expect(stats.countersOf(path).path).toBe(path)
    for (let i = 0; i < 10; i++) stats.countersOf(`d.k_${i}`)
    // At the bound, only a path that is not truncated is looked up unchanged.
    expect(stats.countersOf(path)).toBe(stats.countersOf(`${path}y`))
  })

  test('a new long path at the bound gets the shared counters', () => {
    for (let i = 0; i < 5; i++) stats.countersOf(`d.k_${i}`)
    expect(stats.countersOf('y'.repeat(301)).path).toBe(OTHER_PATH)
    expect(paths()).toHaveLength(5)
  })

  test('unknown domains beyond the bound count as one', () => {
    for (const domain of ['a', 'b', 'c', 'd', 'a']) stats.countUnknownDomain(domain)
    expect(stats.listUnknownDomains()).toEqual([
      ['a', 2],
      ['b', 1],
      [OTHER_PATH, 2],
    ])
  })
})

describe('names', () => {
  test.each([
    ['domain.key_value.key2', 'domain.key_value.key2'],
    ['d.path_/a:b|c', 'd.path_/a_b_c'],
    ['d.remote_10.0.0.255', 'd.remote_10_0_0_255'],
    ['d.k_a\nevil:1|c\r\u2028\0', 'd.k_a_evil_1_c___'],
    ['d.k_\u{1F600}', 'd.k_\u{1F600}'],
  ])('%j is exported as %j', (path, sanitized) => {
    expect(sanitizedPathOf(path)).toBe(sanitized)
  })

  test('paths with equal sanitized paths share counters, so that no series is duplicated', () => {
    expect(stats.countersOf('d.k_a:b')).toBe(stats.countersOf('d.k_a|b'))
    expect(paths()).toEqual(['d.k_a_b'])
  })

  test('/stats has one sorted line per counter, and one for the response times', () => {
    stats.countersOf('d.k_v').record(hit)
    stats.countUnknownDomain('unknown')
    const [configLoadSuccess, configLoadError, globalShadowMode, redisError] = [1, 2, 3, 4]
    Object.assign(stats.service, { configLoadSuccess, configLoadError, globalShadowMode })
    Object.assign(stats.service, { redisError, serviceError: 5 })
    for (const ms of [1, 2, 3, 4]) stats.countCall(ms)
    const lines = renderStats(stats).split('\n')
    expect(lines.pop()).toBe('')
    expect(lines).toEqual([...lines].sort())
    expect(lines).toContain('ratelimit.service.rate_limit.d.k_v.total_hits: 1')
    expect(lines).toContain('ratelimit.service.rate_limit.d.k_v.over_limit: 0')
    expect(lines).toContain('ratelimit.service.rate_limit.unknown.domain_not_found: 1')
    expect(lines).toContain('ratelimit.service.config_load_success: 1')
    expect(lines).toContain('ratelimit.service.config_load_error: 2')
    expect(lines).toContain('ratelimit.service.global_shadow_mode: 3')
    expect(lines).toContain('ratelimit.service.call.should_rate_limit.redis_error: 4')
    expect(lines).toContain('ratelimit.service.call.should_rate_limit.service_error: 5')
    expect(lines).toContain('ratelimit_server.ShouldRateLimit.total_requests: 4')
    expect(lines).toContain(
      'ratelimit_server.ShouldRateLimit.response_time: ' +
        'count=4 mean=2.500ms p50=2.000ms p99=4.000ms max=4.000ms',
    )
  })

  test('statsd names are unique', () => {
    stats.countersOf('d.k').record(hit)
    const names = [...readStats(stats).counters].map(([name]) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toContain('ratelimit.service.call.should_rate_limit.redis_error')
  })
})

describe('Prometheus', () => {
  const metrics = createMetrics()

  test('rules have the labels of envoyproxy/ratelimit, and the whole path as `rule`', async () => {
    connectMetrics(stats, metrics)
    stats.countersOf('d.a_1.b_2.c_3').record(hit)
    stats.countersOf('d.a_1.b_2.c_4').record(hit)
    stats.countersOf('e.a').record({ ...hit, hits: 3 })
    stats.service.redisError = 4
    const page = (await metrics.registry.metrics()).split('\n')
    const total = 'ratelimit_service_rate_limit_total_hits'
    const deep = `${total}{domain="d",key1="a_1",key2="b_2",rule="d.a_1.b_2`
    expect(page).toContain(`${deep}.c_3"} 1`)
    expect(page).toContain(`${deep}.c_4"} 1`)
    expect(page).toContain(`${total}{domain="e",key1="a",key2="",rule="e.a"} 3`)
    expect(page).toContain('ratelimit_service_should_rate_limit_error{err_type="redis_error"} 4')
    expect(page).toContain('ratelimit_service_config_load_error 0')
  })

  test('a flood of values creates fewer than 1,000 series', async () => {
    const flooded = new RuleStats({ nearLimitRatio: 0.8 })
    connectMetrics(flooded, metrics)
    for (let i = 0; i < 20_000; i++) {
      flooded.countersOf(`d.k_${i}`).record(hit)
      flooded.countUnknownDomain(`d${i}`)
    }
    const page = await metrics.registry.metrics()
    const series = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(series.length).toBeLessThan(900)
  })
})
