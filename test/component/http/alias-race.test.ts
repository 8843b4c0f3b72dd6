// 64 clients create the same alias concurrently on the real standalone process: the short form of
// `npm run storm -- alias`.
import { expect, test } from '@jest/globals'
import { raceForAliases } from '../../soak/alias.ts'
import { newSeed } from '../../kit/random.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'

const TEST_MS_MAX = 180_000
const ROUNDS = 20

test(
  'exactly one of 64 creates of an alias gets 201, the others get 409, and its target is stored',
  async () => {
    const seed = newSeed()
    process.stdout.write(`alias race, seed ${String(seed)}\n`)
    const service = await startStandalone()
    try {
      const sum = await raceForAliases({ port: service.port, rounds: ROUNDS, seed })
      expect(sum).toEqual({ rounds: ROUNDS, created: ROUNDS, rejected: ROUNDS * 63 })
    } finally {
      await service.stop()
    }
  },
  TEST_MS_MAX,
)
