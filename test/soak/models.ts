// The protocol models in full: every interleaving of the larger scenarios up to a bound, every
// mutant, and random walks through scenarios that are too large to explore completely.
import { cacheScenario } from '../model/cache-model.ts'
import { cacheMutants } from '../model/cache-mutants.ts'
import { largeCacheScenarios, walkedCacheScenarios } from '../model/cache-scenarios.ts'
import { changeScenario } from '../model/change-model.ts'
import { changeMutants, largeChangeScenarios } from '../model/change-scenarios.ts'
import { claimScenario } from '../model/claim-model.ts'
import { claimMutants } from '../model/claim-mutants.ts'
import { largeClaimScenarios, walkedClaimScenarios } from '../model/claim-scenarios.ts'
import { type Exploration, explore, type Scenario, walk } from '../model/explore.ts'
import { explored } from '../model/explored.ts'
import { poolScenario } from '../model/pool-model.ts'
import { largePoolScenarios, poolMutants, walkedPoolScenarios } from '../model/pool-scenarios.ts'

type Log = (line: string) => void

const STATES_MAX = 1_500_000
const WALKS = 20_000

/** Runs every model. Throws if a model has a violation, or a mutant has none. */
export async function run({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const random = randomFrom(seed)
  for (const { name, setup, timeouts, crashes } of largeClaimScenarios) {
    await mustHold(name, { ...claimScenario(setup), timeouts, crashes }, log)
  }
  for (const { name, setup, timeouts, crashes } of largePoolScenarios) {
    await mustHold(name, { ...poolScenario(setup), timeouts, crashes }, log)
  }
  for (const { name, setup, timeouts, crashes } of largeCacheScenarios) {
    await mustHold(name, { ...cacheScenario(setup), timeouts, crashes }, log)
  }
  for (const { name, setup, timeouts, crashes } of largeChangeScenarios) {
    await mustHold(name, { ...changeScenario(setup), timeouts, crashes }, log)
  }
  for (const { name, setup, timeouts, crashes } of walkedClaimScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...claimScenario(setup), timeouts, crashes }, options), log)
  }
  for (const { name, setup, timeouts, crashes } of walkedPoolScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...poolScenario(setup), timeouts, crashes }, options), log)
  }
  for (const { name, setup, timeouts, crashes } of walkedCacheScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...cacheScenario(setup), timeouts, crashes }, options), log)
  }
  for (const { name, setup, timeouts, crashes, breaks } of claimMutants) {
    const scenario = { ...claimScenario(setup), timeouts: timeouts + 1, crashes: crashes + 1 }
    mustBeFound(name, { breaks, found: await explore(scenario) })
  }
  for (const { name, setup, timeouts, crashes, breaks } of poolMutants) {
    const scenario = { ...poolScenario(setup), timeouts: timeouts + 1, crashes: crashes + 1 }
    mustBeFound(name, { breaks, found: await explore(scenario) })
  }
  for (const { name, setup, timeouts, crashes, breaks } of cacheMutants) {
    const scenario = { ...cacheScenario(setup), timeouts, crashes }
    mustBeFound(name, { breaks, found: await explore(scenario, { stopAtFirst: true }) })
  }
  for (const { name, setup, timeouts, crashes, breaks } of changeMutants) {
    mustBeFound(name, {
      breaks,
      found: await explore({ ...changeScenario(setup), timeouts, crashes }),
    })
  }
  const lists = [claimMutants, poolMutants, cacheMutants, changeMutants]
  const mutants = lists.reduce((sum, { length }) => sum + length, 0)
  log(`${String(mutants)} mutants, each found`)
}

async function mustHold<S>(name: string, scenario: Scenario<S>, log: Log): Promise<void> {
  check(name, await explore({ ...scenario, statesMax: STATES_MAX }), log)
}

function check(name: string, found: Exploration, log: Log): void {
  log(explored(name, found).trimEnd())
  if (found.violations.size > 0) throw new Error(`${name} has a violation`)
}

function mustBeFound(name: string, mutant: { breaks: string; found: Exploration }): void {
  if (mutant.found.violations.has(mutant.breaks)) return
  throw new Error(`mutant not found: ${name}`)
}

/** Random numbers in [0, 1) from `seed` (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
