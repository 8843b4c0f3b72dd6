// Readers, creators and operators of one code as processes that run the real ladder, the real
// protocol of the cache, createLink() and the operator's changes over the model's store and Redis.
// A mutant bends what the real code is given.
import { createLinkFinder, type FindDeps, type LinkFinder } from '../../src/resolve/find-link.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type BentCache, cacheOf, CODE, linksOf, metrics } from './cache-processes.ts'
import {
  applyCacheOp,
  brokenCaches,
  cacheEvents,
  type CacheState,
  initialState,
} from './cache-state.ts'
import { create, createUseCase, operate, operatorOf } from './cache-writers.ts'
import type { Model } from './explore.ts'
import type { Ask, Process } from './replay.ts'

/** Everything that can be chosen of a scenario but its faults. */
export interface CacheSetup {
  /** For each pod the names of its readers. */
  readonly pods?: readonly (readonly string[])[]
  readonly creators?: readonly string[]
  /** What operators make of the link. */
  readonly changes?: readonly ('on' | 'off')[]
  /** One process that does all of this, without a cache. */
  readonly isAlone?: boolean
  /** Whether what the cache says may be long on its way. */
  readonly isCacheSlow?: boolean
  readonly begin?: Partial<CacheState>
  readonly bent?: BentCache
}

const DAY_MS = 86_400_000

/** The model and processes of a scenario. */
export function cacheScenario(setup: CacheSetup): {
  model: Model<CacheState>
  processes: Process[]
} {
  const { pods = [], creators = [], changes = [], begin = {}, isAlone = false, bent = {} } = setup
  const model: Model<CacheState> = {
    initial: initialState({ ...begin, readers: pods.flat().length }),
    apply: applyCacheOp,
    finish: (state, _, outcome) =>
      outcome === 'done' ? state : { ...state, ill: [...state.ill, String(outcome)].sort() },
    events: cacheEvents,
    broken: brokenCaches,
  }
  if (isAlone) return { model, processes: [aloneOf(setup)] }
  const readers = pods.map((names, i) => podOf(`pod ${String(i)}`, names, setup))
  const writers = creators.map((name) => createUseCase(name, bent))
  const operators = changes.map((to) => operatorOf(to, bent))
  return { model, processes: [...writers, ...operators, ...readers] }
}

/** A pod, whose readers come at any time. */
function podOf(name: string, readers: readonly string[], setup: CacheSetup): Process {
  const { bent = {}, isCacheSlow = false } = setup
  return {
    name,
    async run(ask) {
      const clock = { nowMs: 0 }
      const nowMs = () => clock.nowMs
      let leases = 0
      const newLease = () => `${name}.${String(leases++)}`
      const landing = isCacheSlow ? 'local' : 'now'
      const cache = cacheOf(ask, { bent, clock, newLease, landing })
      const deps: FindDeps = {
        links: linksOf(ask, clock),
        cache,
        nowMs,
        metrics,
        missMs: 0,
        staleMs: DAY_MS,
        random: () => 1,
      }
      const made = createLinkFinder(bent.find?.(deps) ?? deps)
      const finder = bent.finder?.(made, nowMs) ?? made
      await readAll(ask, { readers, finder, clock })
      return 'done'
    },
  }
}

/** They are all alike, so they may as well come in the order of their names. */
async function readAll(
  ask: Ask,
  given: { readers: readonly string[]; finder: LinkFinder; clock: { nowMs: number } },
): Promise<void> {
  const reading: Promise<void>[] = []
  for (const reader of given.readers) {
    given.clock.nowMs = (await ask('local', ['arrive', reader])) as number
    reading.push(read(ask, { ...given, reader }))
  }
  await Promise.all(reading)
}

async function read(
  ask: Ask,
  given: { reader: string; finder: LinkFinder; clock: { nowMs: number } },
): Promise<void> {
  const { reader, finder, clock } = given
  let status: string
  try {
    const target = await finder.find(CODE, clock.nowMs)
    status = target === undefined ? '404' : '302'
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    status = '503'
  }
  await ask('now', ['answer', reader, status])
}

/** One process with everything in it, and no cache. */
function aloneOf({ pods = [], creators = [], changes = [], bent = {} }: CacheSetup): Process {
  return {
    name: 'alone',
    async run(ask) {
      const clock = { nowMs: 0 }
      const nowMs = () => clock.nowMs
      const links = linksOf(ask, clock)
      const deps: FindDeps = { links, nowMs, metrics, missMs: 60_000, random: () => 1 }
      const made = createLinkFinder(bent.find?.(deps) ?? deps)
      const finder = bent.finder?.(made, nowMs) ?? made
      const forget = () => {
        finder.invalidate(CODE)
      }
      const onStored = () => {
        forget()
        return undefined
      }
      const onChanged = () => {
        forget()
        return true
      }
      const writing = creators.map(() => create(ask, { onStored }))
      const operating = changes.map((to) => operate(ask, to, onChanged))
      const reading = readAll(ask, { readers: pods.flat(), finder, clock })
      await Promise.all([...writing, ...operating, reading])
      return 'done'
    },
  }
}
