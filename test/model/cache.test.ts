// Explores how links are read and changed with the real ladder, cache, creation and operations:
// every interleaving within the bounds.
import { expect, test } from '@jest/globals'
import { cacheScenario } from './cache-model.ts'
import { cacheMutants } from './cache-mutants.ts'
import { cacheScenarios } from './cache-scenarios.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

test.each(cacheScenarios)('caching holds: $name', async ({ name, setup, unknowns, crashes }) => {
  const found = await explore({ ...cacheScenario(setup), unknowns, crashes })
  process.stdout.write(explored(`cache: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(cacheMutants)(
  'the explorer finds: $name',
  async ({ setup, unknowns, crashes, breaks }) => {
    const scenario = { ...cacheScenario(setup), unknowns, crashes }
    const found = await explore(scenario, { stopAtFirst: true })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
