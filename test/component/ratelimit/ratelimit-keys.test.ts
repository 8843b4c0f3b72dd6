// An unbounded number of keys against the `ratelimit` role: the short form of
// `npm run storm -- keys`.
import { expect, test } from '@jest/globals'
import { requestManyKeys, renderKeysOutcome } from '../../soak/keys.ts'
import { newSeed } from '../../kit/random.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const size = {
  shared: { warmUp: 160_000, keys: 60_000 },
  local: { warmUp: 120_000, keys: 40_000 },
  // In a run this short, garbage collection alone changes the memory by a tenth; a leak of 1 KB for
  // each key would exceed this bound.
  growthMax: 1.4,
}

test(
  'the memory and the series of the limiter stay bounded with a new key on every call',
  async () => {
    const seed = newSeed()
    process.stdout.write(`keys, seed ${seed}\n`)
    const outcome = await requestManyKeys({ ...size, seed })
    process.stdout.write(`keys: ${renderKeysOutcome(outcome)}\n`)
    expect(outcome.counters).toBeGreaterThanOrEqual(220_000)
    expect(outcome.fallbacks).toBeGreaterThanOrEqual(160_000)
  },
  TEST_MS_MAX,
)
