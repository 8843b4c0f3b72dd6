// Random requests to the real standalone process: the short form of `npm run storm -- fuzz`.
import { expect, test } from '@jest/globals'
import { fuzz, renderCounts } from '../../soak/fuzz.ts'
import { newSeed } from '../../kit/random.ts'
import { startStandalone } from '../../kit/processes/standalone.ts'

const TEST_MS_MAX = 120_000
const CASES = 30_000

test(
  'no random request gets a 5xx or hangs, and every link redirects to its target',
  async () => {
    const seed = newSeed()
    process.stdout.write(`fuzz, seed ${String(seed)}\n`)
    const service = await startStandalone()
    try {
      const counts = await fuzz({ port: service.port, cases: CASES, seed })
      process.stdout.write(`fuzz: ${renderCounts(counts)}\n`)
      expect(counts.cases).toBeGreaterThanOrEqual(CASES)
      // The test is meaningful only if both valid and invalid requests were sent.
      for (const status of [201, 302, 400, 404, 405, 409, 415, 422]) {
        expect([status, (counts.byStatus.get(status) ?? 0) > 0]).toEqual([status, true])
      }
      expect(service.log.filter(({ level }) => level === 'error')).toEqual([])
    } finally {
      await service.stop()
    }
  },
  TEST_MS_MAX,
)
