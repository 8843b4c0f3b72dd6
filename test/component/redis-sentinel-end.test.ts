// A process that was connected behind Sentinel ends when it has closed its connection, whatever has
// become of the sentinel, and says nothing on stderr meanwhile.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { FAILOVER_MS_MAX, startSentinel } from '../parts/redis.ts'
import { inTime, waitFor } from './wait-for.ts'

/** Redis may have to be installed. */
jest.setTimeout(400_000)

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Five times what a connection may take to close; the driver alone takes 2 s. */
const END_MS_MAX = 1000
/** So many are ended one after the other, of which a machine that stalls may hold up some. */
const PROCESSES = 3

/** Connects, says what it is told of the connection, and closes it when its stdin ends. */
const code = `
import { connectRedis } from './src/stores/redis/connection.ts'
const say = (what: string) => () => { process.stdout.write(what + '\\n') }
const sentinels = [{ host: '127.0.0.1', port: Number(process.argv[1]) }]
const target = { kind: 'sentinel', masterName: 'master', sentinels } as const
const watch = { onUp: say('up'), onDown: say('down') }
const connection = connectRedis({ target, database: 0, timeoutMs: 1000 }, watch)
process.stdin.once('end', () => { connection.close() }).resume()
`

let parts: Awaited<ReturnType<typeof startSentinel>>

beforeAll(async () => {
  parts = await startSentinel()
})

afterAll(() => parts.close())

/** A process that connects. */
function begin() {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript']
  const args = [...flags, '--eval', code, String(parts.sentinel.port)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'pipe' })
  let [said, complained] = ['', '']
  child.stdout.on('data', (data: Buffer) => (said += data.toString()))
  child.stderr.on('data', (data: Buffer) => (complained += data.toString()))
  return {
    saw: (what: string) =>
      waitFor(`${what} (${complained})`, () => said.includes(what), FAILOVER_MS_MAX),
    /** Has it close its connection; gives how long it takes to end. */
    async end() {
      const begunMs = performance.now()
      const ended = once(child, 'close')
      child.stdin.end()
      await inTime('the end of the process', ended)
      const tookMs = performance.now() - begunMs
      expect([child.exitCode, complained]).toEqual([0, ''])
      return tookMs
    },
    kill: () => child.kill('SIGKILL'),
  }
}

/** What becomes of the sentinel, one after the other; each may wait for what the processes say. */
test.each<[string, (saw: (what: string) => Promise<unknown>) => Promise<void>]>([
  [
    'hangs',
    () => {
      parts.sentinel.stop()
      return Promise.resolve()
    },
  ],
  [
    'has told of a failover',
    async (saw) => {
      await parts.master.kill()
      await saw('down\nup\n')
    },
  ],
  ['was killed', () => parts.sentinel.kill()],
])('behind a sentinel that %s', async (_, befall) => {
  const processes = Array.from({ length: PROCESSES }, begin)
  try {
    const saw = (what: string) => Promise.all(processes.map((one) => one.saw(what)))
    await saw('up\n')
    await befall(saw)
    const tookMs: number[] = []
    for (const one of processes) tookMs.push(await one.end())
    expect(Math.min(...tookMs)).toBeLessThan(END_MS_MAX)
  } finally {
    for (const one of processes) one.kill()
    parts.sentinel.resume()
  }
})
