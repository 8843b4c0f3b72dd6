// Explores claims of codes with the real createLink(): every interleaving within the bounds.
import { expect, test } from '@jest/globals'
import { claimScenario } from './claim-model.ts'
import { claimMutants } from './claim-mutants.ts'
import { claimScenarios } from './claim-scenarios.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

test.each(claimScenarios)('claims hold: $name', async ({ name, setup, timeouts, crashes }) => {
  const found = await explore({ ...claimScenario(setup), timeouts, crashes })
  process.stdout.write(explored(`claim: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(claimMutants)(
  'the explorer finds: $name',
  async ({ setup, timeouts, crashes, breaks }) => {
    const found = await explore({ ...claimScenario(setup), timeouts, crashes })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
