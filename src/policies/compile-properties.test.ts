// Properties of the compiler with random hostile policies. A failure prints the seed.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GRANTS, rulesOf, worlds } from '../../test/kit/policies/random-policies.ts'
import type { Rule } from '../limits/rule.ts'
import { eachRule, listRules } from '../limits/rule-tree.ts'
import { type Compilation, compile } from './compile.ts'
import type { Policy } from './policy.ts'

test('the limiter accepts all resources; order and rejected policies have no effect', () => {
  let rejected = 0
  let accepted = 0
  let kept = 0
  fc.assert(
    fc.property(
      worlds.chain((all) => fc.tuple(fc.constant(all), shuffled(all))),
      ([all, other]) => {
        const compiled = compile(all, GRANTS)
        const isActive = ({ uid }: Policy) => compiled.active.has(uid)
        const specs = [...compiled.active.values()].map(({ spec }) => spec)
        expect(listRules(rulesOf(compiled))).toHaveLength(
          specs.flatMap(({ limits }) => limits).length,
        )
        expect(compile(other, GRANTS)).toEqual(compiled)
        const others = compile(all.filter(isActive), GRANTS)
        expect(others.resources).toEqual(compiled.resources)
        expect(others.version).toBe(compiled.version)
        accepted += others.outcomes.size
        rejected += all.length - others.outcomes.size
        kept += all.filter(isActive).filter(isRejectedBy(compiled)).length
        for (const [id, outcome] of others.outcomes) {
          expect(compiled.outcomes.get(id)).toEqual(outcome)
        }
      },
    ),
    { numRuns: 300 },
  )
  expect(Math.min(accepted, rejected, 4 * kept)).toBeGreaterThan(300) // all are tried
})

test('the policies of one tenant have no effect on the rules of another', () => {
  const isIn = (namespace: string) => (each: Policy) => each.namespace === namespace
  const resultOf = (compiled: Compilation, namespace: string) => ({
    outcomes: [...compiled.outcomes].filter(([id]) => id.startsWith(`${namespace}/`)),
    rules: [...eachRule(rulesOf(compiled))].filter((rule) => isWrittenBy(rule, namespace)),
  })
  const isWrittenBy = ({ name, path }: Rule, namespace: string) =>
    path.startsWith('edge.') ? name?.startsWith(`${namespace}/`) : namespace === 'b'
  fc.assert(
    fc.property(worlds, (all) => {
      const tenants = all.filter((each) => isIn('a')(each) || isIn('b')(each))
      const both = compile(tenants, GRANTS)
      for (const namespace of ['a', 'b']) {
        const alone = compile(tenants.filter(isIn(namespace)), GRANTS)
        expect(resultOf(alone, namespace)).toEqual(resultOf(both, namespace))
      }
    }),
    { numRuns: 200 },
  )
})

function shuffled(all: readonly Policy[]): fc.Arbitrary<Policy[]> {
  return fc.shuffledSubarray([...all], { minLength: all.length })
}

function isRejectedBy({ outcomes }: Compilation) {
  return ({ uid }: Policy) => outcomes.get(uid)?.accepted === false
}
