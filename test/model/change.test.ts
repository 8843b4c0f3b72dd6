// Explores link changes by operators with the real Cassandra link store: every interleaving within
// the bounds.
import { expect, test } from '@jest/globals'
import { changeScenario } from './change-model.ts'
import { changeMutants, changeScenarios } from './change-scenarios.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

test.each(changeScenarios)('changes hold: $name', async ({ name, setup, timeouts, crashes }) => {
  const found = await explore({ ...changeScenario(setup), timeouts, crashes })
  process.stdout.write(explored(`change: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(changeMutants)(
  'the explorer finds: $name',
  async ({ setup, timeouts, crashes, breaks }) => {
    const scenario = { ...changeScenario(setup), timeouts, crashes }
    const found = await explore(scenario, { stopAtFirst: true })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
