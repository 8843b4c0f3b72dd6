// The identifiers of a policy's rules are those that a limiter derives from the compiled rules.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GRANTS, LIMIT, policy, rulesOf, worlds } from '../../test/kit/policies/random-policies.ts'
import { ruleIdOf } from '../limits/rule-id.ts'
import { listRules } from '../limits/rule-tree.ts'
import { compile } from './compile.ts'
import { ruleIdsOf } from './rule-ids.ts'

test('each rule of a limiter has the identifier of one policy', () => {
  const run = fc.property(worlds, (policies) => {
    const compilation = compile(policies, GRANTS)
    const ids = [...compilation.active.values()].flatMap(({ spec }) => ruleIdsOf(spec, undefined))
    expect(ids.toSorted()).toEqual(listRules(rulesOf(compilation)).map(ruleIdOf).sort())
    expect(new Set(ids).size).toBe(ids.length)
  })
  fc.assert(run, { numRuns: 100 })
})

test('each API key has its own rules', () => {
  const hashes = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`)
  const keys = policy('shop/keys', { match: [{ key: 'k', secretRef: { name: 's' } }] })
  const grant = { domain: 'shop', namespaces: ['shop'], apiKeys: true }
  const compilation = compile([{ ...keys, apiKeys: { hashes } }], [grant])
  const { spec = keys.spec } = compilation.active.get('shop/keys') ?? {}
  const ids = ruleIdsOf(spec, hashes)
  expect(ids.toSorted()).toEqual(listRules(rulesOf(compilation)).map(ruleIdOf).sort())
  expect(new Set(ids).size).toBe(2)
})

test('a rule with another limit has another identifier', () => {
  const idOf = (limit: object) => {
    const spec = { ...policy('shop/p').spec, domain: 'shop', limits: [{ ...LIMIT, ...limit }] }
    return ruleIdsOf(spec, undefined)[0]
  }
  const changes = [{}, { requests: 6 }, { window: '2m' }, { algorithm: 'TokenBucket', burst: 5 }]
  const bucket = { algorithm: 'TokenBucket', burst: 6 }
  const buckets = [bucket, { ...bucket, requests: 6 }, { algorithm: 'LeakyBucket' }]
  expect(new Set([...changes, ...buckets].map(idOf)).size).toBe(7)
})
