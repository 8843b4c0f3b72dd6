// Explores reads and changes of a link with the real read-through, link cache, createLink() and
// operator changes: every interleaving within the bounds.
import { expect, test } from '@jest/globals'
import { cacheScenario } from './cache-model.ts'
import { cacheMutants } from './cache-mutants.ts'
import { cacheScenarios } from './cache-scenarios.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

test.each(cacheScenarios)('link cache holds: $name', async ({ name, setup, timeouts, crashes }) => {
  const found = await explore({ ...cacheScenario(setup), timeouts, crashes })
  process.stdout.write(explored(`cache: ${name}`, found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
})

test.each(cacheMutants)(
  'the explorer finds: $name',
  async ({ setup, timeouts, crashes, breaks }) => {
    const scenario = { ...cacheScenario(setup), timeouts, crashes }
    const found = await explore(scenario, { stopAtFirst: true })
    expect([...found.violations.keys()]).toContain(breaks)
  },
)
