// runNode() reports the cause of a failed step.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { runNode } from './run-node.ts'

const env = process.env
const TIMEOUT_MS = 30_000

test('a step that exits with 0 has not failed', async () => {
  expect(await runNode(['-e', ''], { env, timeout: TIMEOUT_MS })).toBeUndefined()
})

test('a step that exceeds its timeout is terminated, and the timeout is reported', async () => {
  const hangs = ['-e', 'setInterval(() => undefined, 1000)']
  expect(await runNode(hangs, { env, timeout: 600 })).toBe('timed out after 0.6 s')
})

test('a step that hangs after it wrote its result is terminated', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-run-node-'))
  const path = join(folder, 'result.json')
  const write = `fs.writeFileSync(${JSON.stringify(path)}, '{}')`
  try {
    const hangs = `process.on('SIGTERM', () => undefined); ${write}; for (;;);`
    const bounds = { env, timeout: TIMEOUT_MS, result: { path, exitMsMax: 700 } }
    expect(await runNode(['-e', hangs], bounds)).toBe('did not exit within 0.7 s of its result')
    expect(await runNode(['-e', write], bounds)).toBeUndefined()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test.each([
  ['process.exitCode = 3', 'exit code 3'],
  ["process.kill(process.pid, 'SIGTERM')", 'terminated by SIGTERM'],
])('%s is reported as %s', async (program, failure) => {
  expect(await runNode(['-e', program], { env, timeout: TIMEOUT_MS })).toBe(failure)
})
