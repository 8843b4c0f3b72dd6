// Explores refills and claims of blocks with the real refillPool() and claimBlock(): every
// interleaving within the bounds.
import { expect, test } from '@jest/globals'
import { explore } from './explore.ts'
import { explored } from './explored.ts'
import { poolScenario } from './pool-model.ts'
import { poolMutants, poolScenarios } from './pool-scenarios.ts'

test.each(poolScenarios)('pools hold: $name', async ({ name, setup, timeouts, crashes }) => {
  const found = await explore({ ...poolScenario(setup), timeouts, crashes })
  process.stdout.write(explored(`pool: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(poolMutants)(
  'the explorer finds: $name',
  async ({ setup, timeouts, crashes, breaks }) => {
    const found = await explore({ ...poolScenario(setup), timeouts, crashes })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
