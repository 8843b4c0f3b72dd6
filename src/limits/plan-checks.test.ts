// The hits of each check, and whether its window is at most a second. decide-limits.test.ts tests
// whole decisions.
import { expect, test } from '@jest/globals'
import { rulesOf } from '../../test/kit/rules-file.ts'
import type { Descriptor } from './descriptor.ts'
import { pairDecisions, planChecks } from './plan-checks.ts'

const rules = rulesOf(`
domain: d
descriptors:
- {key: second, rate_limit: {unit: second, requests_per_unit: 5}}
- {key: short, rate_limit: {window: 100ms, requests_per_unit: 5}}
- {key: long, rate_limit: {window: 2s, requests_per_unit: 5}}
`)

function checksOf(descriptor: Descriptor, hits: number) {
  const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }
  return planChecks(rules, { domain: 'd', hits, descriptors: [descriptor] }, options).checks
}

test.each([
  [undefined, 0, 1],
  [undefined, 1, 1],
  [undefined, 7, 7],
  [0, 7, 0],
  [3, 7, 3],
  [-2, 7, -2],
])('hits of a descriptor %p and of its request %d count as %d', (own, ofRequest, hits) => {
  const descriptor = {
    entries: [{ key: 'second', value: '' }],
    ...(own !== undefined && { hits: own }),
  }
  expect(checksOf(descriptor, ofRequest)).toMatchObject([{ requestedHits: hits, update: { hits } }])
})

test.each([
  ['short', true],
  ['second', true],
  ['long', false],
])('the window %s is one of at most a second: %p', (key, isPerSecond) => {
  const descriptor = { entries: [{ key, value: '' }] }
  expect(checksOf(descriptor, 1)).toMatchObject([{ update: { isPerSecond } }])
})

test('each check gets the decision at its position; a missing one is an error', () => {
  const [check] = checksOf({ entries: [{ key: 'second', value: '' }] }, 3)
  if (check === undefined) throw new Error('no check')
  const { update, descriptorIndex, rule, requestedHits } = check
  const decisions = [1, 2].map((hits) =>
    update.algorithm.decide({ state: undefined, hits, nowUs: 0, limit: update.limit }),
  )
  const checks = [check, check]
  const checked = decisions.map((decision) => ({ descriptorIndex, rule, requestedHits, decision }))
  expect(pairDecisions(checks, decisions)).toEqual(checked)
  expect(() => pairDecisions(checks, decisions.slice(1))).toThrow('the decision of a check')
})
