// The short form of `npm run storm -- http2`: attacks on the memory and the CPU time of the
// limiter, with the heap size of the chart.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { callUnderAttack } from '../../kit/ratelimit/grpc-under-attack.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const program = fileURLToPath(new URL('../../kit/ratelimit/grpc-child.ts', import.meta.url))
/** One attack of each kind; the long form runs all. */
const shortForm = ['open-calls', 'header-blocks', 'messages', 'evictions', 'no-reads']
const RESIDENT_BYTES_MAX = 384 * 1024 * 1024

test.each(shortForm)(
  'under the attack %s no legitimate call is lost, and memory is bounded',
  async (attack) => {
    const child = spawn(process.execPath, ['--max-old-space-size=192', program])
    const exited = once(child, 'exit')
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    try {
      const [line] = (await withinDeadline('the port', once(child.stdout, 'data'))) as [Buffer]
      const port = Number(line.toString())
      const outcome = await callUnderAttack({ attack, port, pid: child.pid ?? 0, seconds: 1 })
      expect([outcome.lost, errors]).toEqual([[], ''])
      expect(outcome.residentBytesMax).toBeLessThan(RESIDENT_BYTES_MAX)
    } finally {
      child.stdin.end()
    }
    await withinDeadline('the exit', exited, 20_000)
  },
  120_000,
)
