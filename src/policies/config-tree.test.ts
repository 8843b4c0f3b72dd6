// The tree of a policy results in the same rules and faults as its serialized RateLimitConfig.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { worlds } from '../../test/kit/policies/random-policies.ts'
import { type ParsedRuleFiles, parseRules } from '../limits/parse-rules.ts'
import { configTreeOf } from './config-tree.ts'
import { descriptorLimitsOf } from './descriptor-limits.ts'
import { writeConfig } from './write-config.ts'

const [first, second] = ['0', '1'].map((digit) => `sha256:${digit.repeat(64)}`)
const hashes = fc.constantFrom(undefined, undefined, [], [first ?? ''], [first ?? '', second ?? ''])

test('configTreeOf() results in the rules and faults of the serialized policy', () => {
  const counts = { accepted: 0, rejected: 0 }
  fc.assert(
    fc.property(worlds, hashes, (all, keys) => {
      for (const { spec } of all) {
        if (spec.match.length === 0) continue // rejected without a tree
        const limits = descriptorLimitsOf(spec, { hashes: keys, namePrefix: 'a/' })
        const bytes = writeConfig('edge', [limits])
        const expected = parseRules([{ index: 0, bytes }], { mergeDomains: false })
        const parsed = parseRules([configTreeOf('edge', limits)], { mergeDomains: false })
        expect(comparable(parsed)).toEqual(comparable(expected))
        counts['faults' in parsed ? 'rejected' : 'accepted'] += 1
      }
    }),
    { numRuns: 600 },
  )
  expect(Math.min(counts.accepted, counts.rejected)).toBeGreaterThan(200)
})

/** The rules; or the faults, in any order, with the depth and the limit of their paths. */
function comparable(parsed: ParsedRuleFiles) {
  if (!('faults' in parsed)) return parsed.rules
  const faults = parsed.faults.map(({ message, path = '' }) => {
    const depth = path.split('descriptors[').length - 1
    return [message, depth, /\.rate_limits\[(\d+)\]/.exec(path)?.[1]]
  })
  return new Set(faults.map((fault) => JSON.stringify(fault)))
}
