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

/** Runs every model; throws at the first that does not hold, or mutant that is not seen. */
export async function storm({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const random = randomFrom(seed)
  for (const { name, setup, unknowns, crashes } of largeClaimScenarios) {
    await mustHold(name, { ...claimScenario(setup), unknowns, crashes }, log)
  }
  for (const { name, setup, unknowns, crashes } of largePoolScenarios) {
    await mustHold(name, { ...poolScenario(setup), unknowns, crashes }, log)
  }
  for (const { name, setup, unknowns, crashes } of largeCacheScenarios) {
    await mustHold(name, { ...cacheScenario(setup), unknowns, crashes }, log)
  }
  for (const { name, setup, unknowns, crashes } of largeChangeScenarios) {
    await mustHold(name, { ...changeScenario(setup), unknowns, crashes }, log)
  }
  for (const { name, setup, unknowns, crashes } of walkedClaimScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...claimScenario(setup), unknowns, crashes }, options), log)
  }
  for (const { name, setup, unknowns, crashes } of walkedPoolScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...poolScenario(setup), unknowns, crashes }, options), log)
  }
  for (const { name, setup, unknowns, crashes } of walkedCacheScenarios) {
    const options = { walks: WALKS, random }
    check(name, await walk({ ...cacheScenario(setup), unknowns, crashes }, options), log)
  }
  for (const { name, setup, unknowns, crashes, breaks } of claimMutants) {
    const scenario = { ...claimScenario(setup), unknowns: unknowns + 1, crashes: crashes + 1 }
    mustBeSeen(name, { breaks, found: await explore(scenario) })
  }
  for (const { name, setup, unknowns, crashes, breaks } of poolMutants) {
    const scenario = { ...poolScenario(setup), unknowns: unknowns + 1, crashes: crashes + 1 }
    mustBeSeen(name, { breaks, found: await explore(scenario) })
  }
  for (const { name, setup, unknowns, crashes, breaks } of cacheMutants) {
    const scenario = { ...cacheScenario(setup), unknowns, crashes }
    mustBeSeen(name, { breaks, found: await explore(scenario, { stopAtFirst: true }) })
  }
  for (const { name, setup, unknowns, crashes, breaks } of changeMutants) {
    mustBeSeen(name, {
      breaks,
      found: await explore({ ...changeScenario(setup), unknowns, crashes }),
    })
  }
  const lists = [claimMutants, poolMutants, cacheMutants, changeMutants]
  const mutants = lists.reduce((sum, { length }) => sum + length, 0)
  log(`${String(mutants)} mutants, each seen`)
}

async function mustHold<S>(name: string, scenario: Scenario<S>, log: Log): Promise<void> {
  check(name, await explore({ ...scenario, statesMax: STATES_MAX }), log)
}

function check(name: string, found: Exploration, log: Log): void {
  log(explored(name, found).trimEnd())
  if (found.violations.size > 0) throw new Error(`${name} does not hold`)
}

function mustBeSeen(name: string, seen: { breaks: string; found: Exploration }): void {
  if (seen.found.violations.has(seen.breaks)) return
  throw new Error(`the mutant is not seen: ${name}`)
}

/** Numbers from 0 below 1 that follow from `seed` (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
