// Explores how operators change a link, with the real changes of Cassandra's store: every
// interleaving within the bounds.
import { expect, test } from '@jest/globals'
import { changeScenario } from './change-model.ts'
import { changeMutants, changeScenarios } from './change-scenarios.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

test.each(changeScenarios)('changes hold: $name', async ({ name, setup, unknowns, crashes }) => {
  const found = await explore({ ...changeScenario(setup), unknowns, crashes })
  process.stdout.write(explored(`change: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(changeMutants)(
  'the explorer finds: $name',
  async ({ setup, unknowns, crashes, breaks }) => {
    const scenario = { ...changeScenario(setup), unknowns, crashes }
    const found = await explore(scenario, { stopAtFirst: true })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
