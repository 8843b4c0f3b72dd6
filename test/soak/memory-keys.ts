// Ten million distinct keys in the in-memory counter store, in this process: the store keeps at
// most its bound of counters, and the memory of the process does not grow.
import { algorithms } from '../../src/limits/algorithms.ts'
import type { CounterHits } from '../../src/limits/counter-store.ts'
import { createMemoryCounterStore } from '../../src/stores/memory/counter-store.ts'
import { createRandom } from '../kit/random.ts'
import { maxByQuarter } from '../kit/resident-bytes.ts'

const COUNTERS_MAX = 100_000
/** After so many the heap has the size that the rhythm of its collector gives it. */
const WARM_UP_KEYS = 2_000_000
const KEYS = 10_000_000
const SAMPLE_EVERY_KEYS = 50_000
/** The most of the last quarter, as part of the most of the first one. */
const GROWTH_MAX = 1.1
const CHARGES_MAX = 4
const DAY_US = 86_400_000_000

/** The full size. */
export function storm({ seed, log }: { seed: number; log: (line: string) => void }): Promise<void> {
  const random = createRandom(seed)
  const store = createMemoryCounterStore({
    nowUs: () => Date.now() * 1000,
    countersMax: COUNTERS_MAX,
  })
  let keys = 0
  const nextCharge = (): CounterHits => {
    const limit = { requests: 10, windowUs: DAY_US, burst: 10, denyConsumes: random.chance(0.5) }
    const algorithm = random.pick(algorithms)
    const key = `shop|route=redirect|client=${(keys++).toString(36)}`
    const cost = random.chance(0.1) ? 11 : 1 // one in ten is denied at once
    return { key, algorithm, limit, cost, veto: 'alone', isPerSecond: false }
  }
  const charge = (upTo: number): readonly number[] => {
    const samples: number[] = []
    for (let next = keys; keys < upTo;) {
      store.consumeNow(Array.from({ length: 1 + random.int(CHARGES_MAX) }, nextCharge))
      if (keys < next) continue
      next += SAMPLE_EVERY_KEYS
      samples.push(process.memoryUsage.rss())
    }
    return samples
  }
  charge(WARM_UP_KEYS)
  const samples = charge(WARM_UP_KEYS + KEYS)
  const held = store.counterCount()
  if (held > COUNTERS_MAX) throw new Error(`${held} counters are held, of ${COUNTERS_MAX}`)
  const quarters = maxByQuarter(samples)
  const text = quarters.map((bytes) => (bytes / 2 ** 20).toFixed(0)).join(', ')
  log(`${keys} keys charged, ${held} counters held; most RSS by quarters: ${text} MiB`)
  const [first = 0, , , last = Infinity] = quarters
  if (last > first * GROWTH_MAX) throw new Error('RSS grows')
  return Promise.resolve()
}
