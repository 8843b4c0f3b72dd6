// Explores the allowance: Envoys and limiter never admit more than the rule, restarts counted, and
// never deny a client below the lowered rule; each mutant breaks an invariant.
import { expect, test } from '@jest/globals'
import { splitRule } from '../../envoy/allowance.ts'
import { allowanceModel, type AllowanceSetup, broken } from './allowance-model.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

const noProcesses = { processes: [], timeouts: 0, crashes: 0 }

const two: AllowanceSetup = {
  rule: { burst: 9, perSecond: 4 },
  allowance: { burst: 3, perMinute: 60 },
  envoys: 2,
  restarts: 3,
  outages: 0,
  mayTimeOut: false,
}
const slow: AllowanceSetup = { ...two, envoys: 1, restarts: 1, mayTimeOut: true }
const rare: AllowanceSetup = { ...two, allowance: { burst: 1, perMinute: 30 }, restarts: 1 }

const scenarios: readonly { name: string; setup: AllowanceSetup }[] = [
  { name: '2 Envoys', setup: two },
  { name: '3 Envoys', setup: { ...two, allowance: { burst: 1, perMinute: 40 }, envoys: 3 } },
  { name: 'less than one request per second', setup: rare },
  { name: 'Redis is lost', setup: { ...two, restarts: 1, outages: 2 } },
  { name: 'calls time out, 1 Envoy', setup: slow },
  {
    name: 'calls time out, 2 Envoys',
    setup: {
      ...slow,
      envoys: 2,
      rule: { burst: 7, perSecond: 4 },
      allowance: { burst: 2, perMinute: 60 },
    },
  },
]

test.each(scenarios)('the allowance holds: $name', async ({ name, setup }) => {
  const found = await explore({ model: allowanceModel(setup), ...noProcesses })
  process.stdout.write(explored(`allowance: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
  expect(found.states).toBeGreaterThan(100)
})

const mutants: readonly { name: string; setup: AllowanceSetup; breaks: string }[] = [
  {
    name: 'the rule of the limiter is not lowered',
    setup: { ...two, mutateSplit: (split) => ({ ...split, limiter: two.rule }) },
    breaks: broken.rule,
  },
  {
    name: 'the burst is lowered, the rate is not',
    setup: {
      ...two,
      mutateSplit: (split) => ({
        ...split,
        limiter: { ...split.limiter, perSecond: two.rule.perSecond },
      }),
    },
    breaks: broken.rule,
  },
  {
    name: 'the rule is lowered for fewer Envoys than there are',
    setup: {
      ...two,
      mutateSplit: () => splitRule(two.rule, { allowance: two.allowance, buckets: 1 }),
    },
    breaks: broken.rule,
  },
  {
    name: 'the lowered rate is rounded up',
    setup: {
      ...rare,
      envoys: 1,
      mutateSplit: ({ limiter, edge }) => ({
        edge,
        limiter: { ...limiter, perSecond: rare.rule.perSecond },
      }),
    },
    breaks: broken.rule,
  },
  {
    name: 'a restart gives two allowances',
    setup: { ...two, allowancesAfterRestart: 2 },
    breaks: broken.rule,
  },
  {
    name: 'the local limit is not lowered',
    setup: {
      ...slow,
      mutateSplit: ({ limiter, edge }) => ({
        limiter,
        edge: { ...edge, redirectBurst: slow.rule.burst },
      }),
    },
    breaks: broken.local,
  },
  {
    name: 'the local limit is lower than what the allowance leaves of the lowered rule',
    setup: {
      ...slow,
      mutateSplit: ({ limiter, edge }) => ({
        limiter,
        edge: { ...edge, redirectBurst: limiter.burst - slow.allowance.burst - 1 },
      }),
    },
    breaks: broken.denied,
  },
  {
    name: 'the rule of the limiter is lowered twice',
    setup: {
      ...two,
      rule: { burst: 13, perSecond: 6 },
      mutateSplit: ({ limiter, edge }) => ({
        edge,
        limiter: splitRule(limiter, { allowance: two.allowance, buckets: 2 }).limiter,
      }),
    },
    breaks: broken.denied,
  },
]

test.each(mutants)('the explorer finds: $name', async ({ setup, breaks }) => {
  const model = allowanceModel(setup)
  const found = await explore({ model, ...noProcesses }, { stopAtFirst: true })
  expect([...found.violations.keys()]).toContain(breaks)
})
