// A process that was connected through Sentinel exits when it has closed its connection, regardless
// of the state of the sentinel, and prints nothing to stderr.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { FAILOVER_MS_MAX, startSentinel } from '../../dependencies/redis.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'
import { durationWithoutPauses } from '../../kit/watch-pauses.ts'

/** Redis may have to be installed. */
jest.setTimeout(400_000)

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** Five times the target for a connection to close; the driver alone takes 2 s. */
const EXIT_MS_MAX = 1000

/** Connects, prints the events of the connection, and closes it when its stdin is closed. */
const code = `
import { connectRedis } from './src/stores/redis/connection.ts'
const print = (event: string) => () => { process.stdout.write(event + '\\n') }
const sentinels = [{ host: '127.0.0.1', port: Number(process.argv[1]) }]
const target = { kind: 'sentinel', masterName: 'master', sentinels } as const
const watch = { onUp: print('up'), onDown: print('down') }
const connection = connectRedis({ target, database: 0, timeoutMs: 1000 }, watch)
process.stdin.once('end', () => { connection.close() }).resume()
`

let topology: Awaited<ReturnType<typeof startSentinel>>

beforeAll(async () => {
  topology = await startSentinel()
})

afterAll(() => topology.close())

/** Faults of the sentinel, one after another; each may wait for an event of the process. */
test.each<[string, (printed: (events: string) => Promise<void>) => Promise<void>]>([
  [
    'hangs',
    () => {
      topology.sentinel.stop()
      return Promise.resolve()
    },
  ],
  [
    'has reported a failover',
    async (printed) => {
      await topology.master.kill()
      await printed('down\nup\n')
    },
  ],
  ['was killed', () => topology.sentinel.kill()],
])('a process exits behind a sentinel that %s', async (_, inject) => {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript']
  const args = [...flags, '--eval', code, String(topology.sentinel.port)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'pipe' })
  try {
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()))
    const printed = (events: string) =>
      waitFor(`${events} (${stderr})`, () => stdout.includes(events), FAILOVER_MS_MAX)
    await printed('up\n')
    await inject(printed)
    const tookMs = await durationWithoutPauses(() => {
      const exited = once(child, 'close')
      child.stdin.end()
      return withinDeadline('the exit of the process', exited)
    })
    expect(tookMs).toBeLessThan(EXIT_MS_MAX)
    expect([child.exitCode, stderr]).toEqual([0, ''])
  } finally {
    child.kill('SIGKILL')
    topology.sentinel.resume()
  }
})
