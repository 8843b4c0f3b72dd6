// A process with a thread that a hung disk blocks: a second signal and the deadline of the stop
// still terminate it, also as PID 1 of a container. The thread opens a FIFO without a writer.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { withinDeadline } from '../../kit/wait-for.ts'

const stopModule = new URL('../../../src/process/stop.ts', import.meta.url).href
/** A bound, for the start of two processes on a busy machine. */
const EXIT_MS_MAX = 25_000

/**
 * Sends itself each signal of its arguments, with a pause between them. The blocked thread is a
 * `worker`, while the stop hangs, or one of Node.js's `pool`, after a stop that succeeds.
 */
const program = `
  import { readFile } from 'node:fs/promises'
  import { setTimeout } from 'node:timers/promises'
  import { Worker } from 'node:worker_threads'
  import { stopOnSignal } from '${stopModule}'
  const [, fifo, msMax, blocks, ...signals] = process.argv
  stopOnSignal({
    stop: () => blocks === 'pool' ? Promise.resolve(0) : new Promise(() => undefined),
    onFailure: (error) => console.log(error),
    onTimeout: () => console.log('timed out'),
    msMax: () => Number(msMax),
  })
  const read = "process.getBuiltinModule('fs').readFileSync(process.argv.at(-1))"
  if (blocks === 'pool') void readFile(fifo)
  const thread = new Worker(blocks === 'pool' ? '' : read, { eval: true, argv: [fifo] })
  thread.once('online', async () => {
    for (const signal of signals) {
      await setTimeout(1000) // the duplicate of a signal is ignored
      process.kill(process.pid, signal)
    }
  })`

const asFirstProcess = ['unshare', '--map-root-user', '--pid', '--fork', '--kill-child']

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-hung-'))
  execFileSync('mkfifo', [join(folder, 'disk')])
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** Runs the program in this PID namespace, and as PID 1 of another, at the same time. */
const runBoth = (args: readonly string[]) =>
  Promise.all([[], asFirstProcess].map((wrapper) => run(wrapper, args)))

/** Runs the program; returns its output and its exit code, or the signal that terminated it. */
async function run(wrapper: readonly string[], args: readonly string[]) {
  const node = [process.execPath, '--input-type=module', '--eval', program, join(folder, 'disk')]
  const [command = '', ...rest] = [...wrapper, ...node, ...args]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const closed = new Promise<number | string | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve(code ?? signal)
    })
  })
  try {
    return { status: await withinDeadline('the exit', closed, EXIT_MS_MAX), output }
  } finally {
    child.kill('SIGKILL')
  }
}

test.each([
  ['SIGTERM', 143, 'worker'],
  ['SIGINT', 130, 'worker'],
  ['SIGTERM', 143, 'pool'],
] as const)('a second %s terminates it: %i, %s', async (signal, exitCode, blocked) => {
  const args = ['60000', blocked, 'SIGTERM', signal]
  expect(await runBoth(args)).toEqual([signal, exitCode].map((status) => ({ status, output: '' })))
})

test.each(['worker', 'pool'])('the deadline of the stop terminates it: %s', async (blocked) => {
  const args = ['500', blocked, 'SIGTERM']
  const output = 'timed out\n'
  expect(await runBoth(args)).toEqual(['SIGKILL', 137].map((status) => ({ status, output })))
})
