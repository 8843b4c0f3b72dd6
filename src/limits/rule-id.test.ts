// Rule IDs differ for each rule and each limit.
import { expect, test } from '@jest/globals'
import { rulesOf } from '../../test/kit/rules-file.ts'
import { ruleIdOf } from './rule-id.ts'
import { listRules } from './rule-tree.ts'

const idOf = (limit: string) => {
  const rules = rulesOf(`domain: d\ndescriptors: [{key: k, rate_limit: {${limit}}}]\n`)
  return listRules(rules).map(ruleIdOf).join()
}
const bucket = 'algorithm: token_bucket, unit: minute'

test('the ID of a rule has 22 characters and changes with its limit', () => {
  const limits = [
    `${bucket}, requests_per_unit: 1, burst: 11`,
    `${bucket}, requests_per_unit: 1, burst: 12`,
    `${bucket}, requests_per_unit: 11, burst: 11`,
    'unit: minute, requests_per_unit: 1',
    'unit: hour, requests_per_unit: 1',
    'unlimited: true',
  ]
  const ids = limits.map(idOf)
  expect(new Set(ids).size).toBe(limits.length)
  for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/)
  expect(limits.map(idOf)).toEqual(ids)
})
