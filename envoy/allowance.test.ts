// Splitting the redirect rule between the allowances of the Envoys and the limiter.
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseRules } from '../src/limits/parse-rules.ts'
import { describeRules } from '../src/limits/describe-rules.ts'
import { lowerRedirectRule, splitRule } from './allowance.ts'

const allowance = { burst: 5, perMinute: 12 }
const split = (burst: number, perSecond: number, buckets: number) =>
  splitRule({ burst, perSecond }, { allowance, buckets })

test('the limiter and the local limit are lower by the allowances', () => {
  expect(split(500, 200, 6)).toEqual({
    limiter: { burst: 470, perSecond: 198 },
    edge: {
      allowanceBurst: 5,
      allowancePerMinute: 12,
      allowanceLimit: 470,
      allowanceRemaining: 198,
      redirectBurst: 495,
      redirectPerSecond: 199,
    },
  })
})

test('all buckets together never exceed the rule', () => {
  const size = fc.integer({ min: 1, max: 1000 })
  const sizes = fc.record({
    burst: size,
    perMinute: size,
    buckets: fc.integer({ min: 1, max: 50 }),
  })
  fc.assert(
    fc.property(sizes, ({ buckets, ...given }) => {
      const rule = { burst: 60_000, perSecond: 2000 }
      const { limiter, edge } = splitRule(rule, { allowance: given, buckets })
      expect(limiter.burst + buckets * edge.allowanceBurst).toBe(rule.burst)
      const perMinute = 60 * limiter.perSecond + buckets * edge.allowancePerMinute
      expect(perMinute).toBeLessThanOrEqual(60 * rule.perSecond)
      expect(perMinute).toBeGreaterThan(60 * (rule.perSecond - 1))
      expect(edge.redirectBurst).toBeGreaterThanOrEqual(limiter.burst)
      expect(edge.redirectPerSecond).toBeGreaterThanOrEqual(limiter.perSecond)
    }),
  )
})

test('a rule that the allowances use up is rejected', () => {
  expect(split(51, 3, 10).limiter).toEqual({ burst: 1, perSecond: 1 })
  expect(() => split(50, 3, 10)).toThrow(
    /10 allowance buckets \(burst 5, 12 per minute each\) leave nothing of burst 50/,
  )
  expect(() => split(51, 2, 10)).toThrow(/leave nothing of burst 51, 2 per second/)
})

test('the shipped rules contain the lower rule, and no other change', () => {
  const shipped = readFileSync(new URL('rate-limits.yaml', import.meta.url), 'utf8')
  const rowsOf = (text: string) => {
    const parsed = parseRules([{ name: 'rules', text }], { mergeDomains: false })
    if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
    return describeRules(parsed.rules).rows.map((row) => row.join(' '))
  }
  const lowered = lowerRedirectRule(shipped, { burst: 470, perSecond: 198 })
  const changed = rowsOf(lowered).filter((row) => !rowsOf(shipped).includes(row))
  expect(changed).toEqual([expect.stringMatching(/ 198 second 470 redirects-per-client/)])
  expect(() => lowerRedirectRule('domain: edge', { burst: 1, perSecond: 1 })).toThrow(
    /no token bucket/,
  )
})
