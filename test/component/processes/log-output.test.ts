// The log of a process whose stdout is read slowly, not read, or closed: lines stay in order, the
// buffer is bounded, dropped lines are reported, and the process continues.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from '@jest/globals'
import { roleArguments } from '../../kit/processes/role-process.ts'

const LOG = new URL('../../../src/telemetry/log.ts', import.meta.url).href
const OUTPUT = new URL('../../../src/telemetry/log-output.ts', import.meta.url).href
const RUN_MS_MAX = 20_000

/** A process with `log` and `allWritten` that runs `source` and exits. */
function run(source: string): ChildProcessByStdio<null, Readable, Readable> {
  const script = `
    import { createLog } from ${JSON.stringify(LOG)}
    import { flushed } from ${JSON.stringify(OUTPUT)}
    process.stdout.on('error', () => undefined)
    const log = createLog({ role: 'test', level: 'info' })
    const allWritten = () => flushed(process.stdout)
    ${source}
    process.exit(0)`
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module']
  return spawn(process.execPath, [...options, '--eval', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_MS_MAX,
    killSignal: 'SIGKILL',
  })
}

function linesOf(output: string): Record<string, unknown>[] {
  const lines = output.trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('log lines stay in order while the thread pool is busy', async () => {
  const child = run(`
    const { pbkdf2 } = await import('node:crypto')
    for (let i = 0; i < 8; i += 1) pbkdf2('a', 'b', 200000, 32, 'sha256', () => undefined)
    for (let i = 0; i < 5; i += 1) log.info({ i }, 'line')`)
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  expect(linesOf(output).map((line) => line['i'])).toEqual([0, 1, 2, 3, 4])
})

test('an unread stdout buffers 1 MiB; the count of dropped lines is logged later', async () => {
  const child = run(`
    for (let i = 0; i < 4000; i += 1) log.info({ i, text: 'x'.repeat(1000) }, 'line')
    process.stderr.write(String(process.stdout.writableLength))
    await new Promise((resolve) => process.stdout.once('drain', resolve))
    log.info('after')
    await allWritten()`)
  const [keptBytes] = (await once(child.stderr, 'data')) as [Buffer]
  expect(Number(keptBytes)).toBeGreaterThanOrEqual(1_048_576)
  expect(Number(keptBytes)).toBeLessThan(1_060_000)
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  const lines = linesOf(output)
  const kept = lines.filter((line) => line['msg'] === 'line')
  expect(kept.map((line) => line['i'])).toEqual(kept.map((_, i) => i))
  expect(lines.slice(kept.length)).toMatchObject([
    {
      level: 'warn',
      msg: 'log lines dropped: stdout was not read',
      lines: 4000 - kept.length,
    },
    { msg: 'after' },
  ])
})

test('a process exits although its stdout is not read or is closed', async () => {
  const busy = `for (let i = 0; i < 4000; i += 1) log.info('x'.repeat(1000))
    await allWritten()`
  const [paused, closed] = [run(busy), run(busy)]
  closed.stdout.destroy()
  paused.stdout.pause()
  const exits = [paused, closed].map(async (child) => ((await once(child, 'exit')) as [number])[0])
  expect(await Promise.all(exits)).toEqual([0, 0])
  paused.stdout.destroy()
})

test('the command line exits with 0 although its stdout is closed', async () => {
  const child = spawn(process.execPath, roleArguments('--help'), {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: RUN_MS_MAX,
    killSignal: 'SIGKILL',
  })
  child.stdout.destroy()
  expect(await once(child, 'exit')).toEqual([0, null])
})
