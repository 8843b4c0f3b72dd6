// Mutated sequences of HTTP/2 frames against a gRPC listener: the short form of
// `npm run storm -- http2-fuzz`.
import { expect, test } from '@jest/globals'
import { fuzzHttp2, renderHttp2FuzzCounts } from '../../soak/http2-fuzz.ts'
import { newSeed } from '../../kit/random.ts'

const TEST_MS_MAX = 180_000
const CONNECTIONS = 8000

test(
  'the listener serves legitimate calls after any sequence of frames, and does not hang',
  async () => {
    const seed = newSeed()
    process.stdout.write(`HTTP/2 fuzz, seed ${String(seed)}\n`)
    const counts = await fuzzHttp2({ connections: CONNECTIONS, seed })
    process.stdout.write(`HTTP/2 fuzz: ${renderHttp2FuzzCounts(counts)}\n`)
    expect(counts.connections).toBe(CONNECTIONS)
    // The test is meaningful only if both valid and invalid sequences were sent.
    expect(counts.valid).toBeGreaterThan(CONNECTIONS / 20)
    expect(counts.responses).toBeGreaterThan(CONNECTIONS / 2)
    expect(counts.legitimate).toBeGreaterThan(100)
    for (const code of [1, 6, 9]) expect(counts.byCode.get(`GOAWAY ${String(code)}`)).toBeDefined()
  },
  TEST_MS_MAX,
)
