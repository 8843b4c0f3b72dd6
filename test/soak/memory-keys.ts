// Ten million distinct keys in the in-memory counter store, in this process: the store keeps at
// most its bound of counters, and the memory of the process does not grow.
import { algorithms } from '../../src/limits/algorithms.ts'
import type { CounterUpdate } from '../../src/limits/counter-store.ts'
import { createMemoryCounterStore } from '../../src/stores/memory/counter-store.ts'
import { createRandom } from '../kit/random.ts'
import { maxByQuarter } from '../kit/resident-bytes.ts'

const COUNTERS_MAX = 100_000
/** After these, the garbage collector has reached a steady state. */
const WARM_UP_KEYS = 2_000_000
const KEYS = 10_000_000
const SAMPLE_EVERY_KEYS = 50_000
/** Bound of the most memory in the last quarter, relative to that of the first one. */
const GROWTH_MAX = 1.1
const HITS_MAX = 4
const DAY_US = 86_400_000_000

/** Runs the test at full size. */
export function run({ seed, log }: { seed: number; log: (line: string) => void }): Promise<void> {
  const random = createRandom(seed)
  const store = createMemoryCounterStore({
    nowUs: () => Date.now() * 1000,
    countersMax: COUNTERS_MAX,
  })
  let keys = 0
  const nextUpdate = (): CounterUpdate => {
    const limit = { requests: 10, windowUs: DAY_US, burst: 10, denyConsumes: random.chance(0.5) }
    const algorithm = random.pick(algorithms)
    const key = `shop|route=redirect|client=${(keys++).toString(36)}`
    const hits = random.chance(0.1) ? 11 : 1 // a tenth is denied immediately
    return { key, algorithm, limit, hits, veto: 'alone', isPerSecond: false }
  }
  const consumeUpTo = (upTo: number): readonly number[] => {
    const samples: number[] = []
    for (let next = keys; keys < upTo;) {
      store.consumeNow(Array.from({ length: 1 + random.int(HITS_MAX) }, nextUpdate))
      if (keys < next) continue
      next += SAMPLE_EVERY_KEYS
      samples.push(process.memoryUsage.rss())
    }
    return samples
  }
  consumeUpTo(WARM_UP_KEYS)
  const samples = consumeUpTo(WARM_UP_KEYS + KEYS)
  const counters = store.counterCount()
  if (counters > COUNTERS_MAX)
    throw new Error(`${counters} counters, expected at most ${COUNTERS_MAX}`)
  const quarters = maxByQuarter(samples)
  const rendered = quarters.map((bytes) => (bytes / 2 ** 20).toFixed(0)).join(', ')
  log(`${keys} keys, ${counters} counters; most RSS by quarters: ${rendered} MiB`)
  const [first = 0, , , last = Infinity] = quarters
  if (last > first * GROWTH_MAX) throw new Error('RSS grows')
  return Promise.resolve()
}
