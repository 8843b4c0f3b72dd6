// Readers, create processes and operators of one code. They run the real read-through, cache
// protocol, createLink() and operator changes over the model's store and Redis. A mutant replaces
// dependencies of the real code.
import { createLinkFinder, type FindDeps, type LinkFinder } from '../../src/resolve/find-link.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { type CacheMutation, cacheOf, CODE, linksOf, metrics } from './cache-processes.ts'
import {
  applyCacheOp,
  brokenCaches,
  cacheEvents,
  type CacheState,
  initialState,
} from './cache-state.ts'
import { create, creationOf, operate, operatorOf } from './cache-writers.ts'
import type { Model } from './explore.ts'
import type { Perform, Process } from './replay.ts'

/** The options of a scenario, except its faults. */
export interface CacheSetup {
  /** The names of the readers of each pod. */
  readonly pods?: readonly (readonly string[])[]
  /** The names of the create processes. */
  readonly creations?: readonly string[]
  /** The state that each operator sets. */
  readonly changes?: readonly ('on' | 'off')[]
  /** Whether one process runs everything, without a shared cache. */
  readonly isStandalone?: boolean
  /** Whether responses of the cache may be delayed. */
  readonly isCacheSlow?: boolean
  readonly initial?: Partial<CacheState>
  readonly mutation?: CacheMutation
}

const DAY_MS = 86_400_000

/** The model and processes of a scenario. */
export function cacheScenario(setup: CacheSetup): {
  model: Model<CacheState>
  processes: Process[]
} {
  const {
    pods = [],
    creations = [],
    changes = [],
    initial = {},
    isStandalone = false,
    mutation = {},
  } = setup
  const model: Model<CacheState> = {
    initial: initialState({ ...initial, readers: pods.flat().length }),
    apply: applyCacheOp,
    finish: (state, _, outcome) =>
      outcome === 'done'
        ? state
        : { ...state, problems: [...state.problems, String(outcome)].sort() },
    events: cacheEvents,
    broken: brokenCaches,
  }
  if (isStandalone) return { model, processes: [standaloneOf(setup)] }
  const readers = pods.map((names, i) => podOf(`pod ${String(i)}`, names, setup))
  const writers = creations.map((name) => creationOf(name, mutation))
  const operators = changes.map((to) => operatorOf(to, mutation))
  return { model, processes: [...writers, ...operators, ...readers] }
}

/** A pod; each of its readers may send its request at any time. */
function podOf(name: string, readers: readonly string[], setup: CacheSetup): Process {
  const { mutation = {}, isCacheSlow = false } = setup
  return {
    name,
    async run(perform) {
      const clock = { nowMs: 0 }
      const nowMs = () => clock.nowMs
      let leases = 0
      const newLease = () => `${name}.${String(leases++)}`
      const receipt = isCacheSlow ? 'local' : 'now'
      const cache = cacheOf(perform, { mutation, clock, newLease, receipt })
      const deps: FindDeps = {
        links: linksOf(perform, clock),
        cache,
        nowMs,
        metrics,
        isOnlyWriter: false,
        staleMs: DAY_MS,
        random: () => 1,
      }
      const real = createLinkFinder(mutation.find?.(deps) ?? deps)
      const finder = mutation.finder?.(real, nowMs) ?? real
      await readAll(perform, { readers, finder, clock })
      return 'done'
    },
  }
}

/** Readers are interchangeable, so they send their requests in the order of their names. */
async function readAll(
  perform: Perform,
  given: { readers: readonly string[]; finder: LinkFinder; clock: { nowMs: number } },
): Promise<void> {
  const reading: Promise<void>[] = []
  for (const reader of given.readers) {
    given.clock.nowMs = (await perform('local', ['request', reader])) as number
    reading.push(read(perform, { ...given, reader }))
  }
  await Promise.all(reading)
}

async function read(
  perform: Perform,
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
  await perform('now', ['response', reader, status])
}

/** One process that runs everything, without a shared cache. */
function standaloneOf({
  pods = [],
  creations = [],
  changes = [],
  mutation = {},
}: CacheSetup): Process {
  return {
    name: 'standalone',
    async run(perform) {
      const clock = { nowMs: 0 }
      const nowMs = () => clock.nowMs
      const links = linksOf(perform, clock)
      const deps: FindDeps = { links, nowMs, metrics, isOnlyWriter: true, random: () => 1 }
      const real = createLinkFinder(mutation.find?.(deps) ?? deps)
      const finder = mutation.finder?.(real, nowMs) ?? real
      const invalidate = () => {
        finder.invalidate(CODE)
      }
      const invalidateCaches = () => {
        invalidate()
        return undefined
      }
      const onChanged = () => {
        invalidate()
        return true
      }
      const writing = creations.map(() => create(perform, { invalidateCaches }))
      const operating = changes.map((to) => operate(perform, to, onChanged))
      const reading = readAll(perform, { readers: pods.flat(), finder, clock })
      await Promise.all([...writing, ...operating, reading])
      return 'done'
    },
  }
}
