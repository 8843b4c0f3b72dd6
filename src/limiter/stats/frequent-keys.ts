// Finds the keys with the most hits in a stream, in bounded memory: randomized admission (Ben Basat
// et al., "Randomized Admission Policy for Efficient Top-k and Frequency Estimation", 2017). A new
// key replaces a rare one with a probability that falls with the hits of the rare one.

/** A tracked key. */
export interface FrequentKey<T> {
  readonly key: string
  /** What the caller stores with the key. */
  readonly item: T
  /** Estimate of its hits. */
  readonly hits: number
  /** Its denied hits since it became tracked. */
  readonly denied: number
}

type MutableKey<T> = { -readonly [K in keyof FrequentKey<T>]: FrequentKey<T>[K] }

/** The rare key is the one with the fewest hits among this number of random keys. */
const CANDIDATES = 4

/** Properties of a stream. */
export interface FrequentKeysOptions<S, T> {
  /** Maximum number of tracked keys. */
  readonly keysMax: number
  /** Returns a number from 0 to less than 1. */
  readonly random: () => number
  /** Creates the item of a key that becomes tracked. */
  readonly createItem: (source: S) => T
}

/** The frequent keys of one stream. */
export class FrequentKeys<S, T> {
  readonly #keysMax: number
  readonly #random: () => number
  readonly #createItem: (source: S) => T
  readonly #byKey = new Map<string, MutableKey<T>>()
  readonly #all: MutableKey<T>[] = []

  constructor({ keysMax, random, createItem }: FrequentKeysOptions<S, T>) {
    this.#keysMax = keysMax
    this.#random = random
    this.#createItem = createItem
  }

  /** Counts hits of a key. */
  record(key: string, source: S, { hits, denied }: { hits: number; denied: number }): void {
    const known = this.#byKey.get(key)
    if (known !== undefined) {
      known.hits += hits
      known.denied += denied
      return
    }
    if (this.#all.length < this.#keysMax) {
      const added = { key, item: this.#createItem(source), hits, denied }
      this.#byKey.set(key, added)
      this.#all.push(added)
      return
    }
    const rare = this.#pickRare()
    if (rare === undefined || this.#random() * (rare.hits + hits) >= hits) return
    this.#byKey.delete(rare.key)
    rare.key = key
    rare.item = this.#createItem(source)
    rare.hits += hits
    rare.denied = denied
    this.#byKey.set(key, rare)
  }

  /** The `count` keys with the most hits and those with the most denied hits, in this order. */
  top(count: number): FrequentKey<T>[] {
    const byHits = this.#all.toSorted((a, b) => b.hits - a.hits).slice(0, count)
    const byDenied = this.#all.toSorted((a, b) => b.denied - a.denied).slice(0, count)
    const top = new Set([...byHits, ...byDenied.filter(({ denied }) => denied > 0)])
    return [...top].map((tracked) => ({ ...tracked }))
  }

  #pickRare(): MutableKey<T> | undefined {
    let rare: MutableKey<T> | undefined
    for (let i = 0; i < CANDIDATES; i++) {
      const one = this.#all[Math.floor(this.#random() * this.#all.length)]
      if (rare === undefined || (one !== undefined && one.hits < rare.hits)) rare = one
    }
    return rare
  }
}
