// Runs `curtail ROLE …` of the checkout as a process until it exits.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inherited, roleArguments } from './role-process.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** On a busy machine, a command that reads two million entries takes many seconds. */
const RUN_MS_MAX = 60_000

/** The result of a run. */
export interface Run {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `curtail` with these arguments and only this environment; kills it after `msMax`. */
export function runCurtail(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  msMax = RUN_MS_MAX,
): Promise<Run> {
  const child = spawn(process.execPath, roleArguments(...args), {
    cwd: root,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: msMax,
    killSignal: 'SIGKILL',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exitCode) => {
      resolve({ exitCode, stdout, stderr })
    })
  })
}
