// Random choices that a seed repeats, for tests that generate what they try.

/** A source of random choices. */
export interface Random {
  /** An integer from 0 to `below` - 1. */
  readonly int: (below: number) => number
  /** One of `items`. */
  readonly pick: <T>(items: readonly T[]) => T
  /** True with this probability. */
  readonly chance: (probability: number) => boolean
  /** A list of 0 to `max` things that `make` gives. */
  readonly list: <T>(max: number, make: () => T) => T[]
}

/** Makes a source (mulberry32); the same seed gives the same choices. */
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
      if (items.length === 0) throw new Error('there is nothing to pick from')
      return items[int(items.length)] as T
    },
    chance: (probability) => next() < probability,
    list: (max, make) => Array.from({ length: int(max + 1) }, make),
  }
}

/** A seed for a run that was given none; print it, so that the run can be repeated. */
export function newSeed(): number {
  return Math.floor(Math.random() * 2 ** 31)
}
