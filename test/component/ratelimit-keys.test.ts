// Keys without end against the real `ratelimit` role: the small size of the storm `keys`.
import { expect, test } from '@jest/globals'
import { askForKeys, renderKeysOutcome } from '../storm/keys.ts'
import { newSeed } from './random.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const size = {
  shared: { warmUp: 160_000, keys: 60_000 },
  local: { warmUp: 120_000, keys: 40_000 },
  // In so short a time the collector of garbage alone moves it by a tenth; a kilobyte kept for each
  // key of a run would be more.
  growthMax: 1.4,
}

test(
  'as many keys as there are callers cost neither memory nor series',
  async () => {
    const seed = newSeed()
    process.stdout.write(`keys, seed ${seed}\n`)
    const outcome = await askForKeys({ ...size, seed })
    process.stdout.write(`keys: ${renderKeysOutcome(outcome)}\n`)
    expect(outcome.counters).toBeGreaterThanOrEqual(220_000)
    expect(outcome.fallbacks).toBeGreaterThanOrEqual(160_000)
  },
  TEST_MS_MAX,
)
