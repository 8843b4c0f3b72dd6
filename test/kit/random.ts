// A seeded random generator for tests that generate their input.

/** A seeded random generator. */
export interface Random {
  /** An integer from 0 to `below` - 1. */
  readonly int: (below: number) => number
  /** One of `items`. */
  readonly pick: <T>(items: readonly T[]) => T
  /** True with this probability. */
  readonly chance: (probability: number) => boolean
  /** A list of 0 to `max` items; `create` returns each. */
  readonly list: <T>(max: number, create: () => T) => T[]
}

/** Creates a generator (mulberry32); the same seed yields the same choices. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number) => Math.floor(next() * below)
  return {
    int,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new Error('cannot pick from an empty list')
      return items[int(items.length)] as T
    },
    chance: (probability) => next() < probability,
    list: (max, create) => Array.from({ length: int(max + 1) }, create),
  }
}

/** A random seed. Print it, so that the run can be reproduced. */
export function newSeed(): number {
  return Math.floor(Math.random() * 2 ** 31)
}
