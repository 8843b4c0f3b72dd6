// Malformed and hostile calls against a gRPC listener in its own process: the short form
// of `npm run storm -- hostile`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { createTestClient } from '../../kit/ratelimit/grpc-client.ts'
import { hostileCalls, renderHostileCounts } from '../../kit/ratelimit/grpc-hostile.ts'
import { newSeed } from '../../kit/random.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const CALLS = 10_000
const program = fileURLToPath(new URL('../../kit/ratelimit/grpc-child.ts', import.meta.url))

test(
  'the listener responds to every complete call, and no call crashes it',
  async () => {
    const seed = newSeed()
    process.stdout.write(`hostile gRPC, seed ${seed}\n`)
    const child = spawn(process.execPath, [program])
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    const exited = once(child, 'close')
    try {
      const [line] = (await withinDeadline('the port', once(child.stdout, 'data'))) as [Buffer]
      const port = Number(line.toString())
      const counts = await hostileCalls({ port, calls: CALLS, seed })
      process.stdout.write(`hostile gRPC: ${renderHostileCounts(counts)}\n`)
      expect(counts.calls).toBeGreaterThanOrEqual(CALLS)
      const client = createTestClient(`127.0.0.1:${port}`)
      const descriptors = [{ entries: [{ key: 'k', value: 'v' }] }]
      expect(await client.call({ domain: 'edge', descriptors })).toMatchObject({
        overallCode: 'OK',
      })
      client.close()
    } finally {
      child.stdin.end()
    }
    expect([await withinDeadline('the exit', exited), errors]).toEqual([[0, null], ''])
  },
  TEST_MS_MAX,
)
