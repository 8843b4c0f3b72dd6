// A process that was connected behind Sentinel ends when it has closed its connection, whatever has
// become of the sentinel, and says nothing on stderr meanwhile.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { FAILOVER_MS_MAX, startSentinel } from '../parts/redis.ts'
import { inTime, waitFor } from './wait-for.ts'
import { tookBesidePauses } from './watch-pauses.ts'

/** Redis may have to be installed. */
jest.setTimeout(400_000)

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Five times what a connection may take to close; the driver alone takes 2 s. */
const END_MS_MAX = 1000

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

/** What becomes of the sentinel, one after the other; each may wait for what the process says. */
test.each<[string, (saw: (what: string) => Promise<void>) => Promise<void>]>([
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
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript']
  const args = [...flags, '--eval', code, String(parts.sentinel.port)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'pipe' })
  try {
    let [said, complained] = ['', '']
    child.stdout.on('data', (data: Buffer) => (said += data.toString()))
    child.stderr.on('data', (data: Buffer) => (complained += data.toString()))
    const saw = (what: string) =>
      waitFor(`${what} (${complained})`, () => said.includes(what), FAILOVER_MS_MAX)
    await saw('up\n')
    await befall(saw)
    const tookMs = await tookBesidePauses(() => {
      const ended = once(child, 'close')
      child.stdin.end()
      return inTime('the end of the process', ended)
    })
    expect(tookMs).toBeLessThan(END_MS_MAX)
    expect([child.exitCode, complained]).toEqual([0, ''])
  } finally {
    child.kill('SIGKILL')
    parts.sentinel.resume()
  }
})
