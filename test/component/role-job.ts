// Runs a role that ends by itself, such as `refill` or `migrate`, as its own process for a test; it
// can be killed at any moment.
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { roleArguments } from './role-process.ts'
import { inTime } from './wait-for.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** How it ended. */
interface JobEnd {
  /** Its exit code, or the signal that ended it. */
  readonly how: number | string
  readonly stdout: string
  readonly stderr: string
}

/** A role that is at work. */
export interface Job {
  readonly pid: number
  readonly ended: Promise<JobEnd>
  /** What it has said so far on stdout. */
  said(): string
  /** Ends it at once, if it is still there. */
  kill(): void
  /** Resolves to its output once it has ended with 0. Throws what it said otherwise. */
  succeeded(msMax: number): Promise<string>
}

/** Starts it. */
export function startJob(given: {
  role: string
  env: Readonly<Record<string, string>>
  args?: readonly string[]
}): Job {
  const { role, env, args = [] } = given
  const line = ['setpriv', '--pdeathsig', 'KILL', process.execPath, ...roleArguments(role, ...args)]
  const [command = '', ...rest] = line
  const child = spawn(command, rest, {
    cwd: root,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<JobEnd>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({ how: code ?? signal ?? 'unknown', stdout, stderr })
    })
  })
  const kill = () => void child.kill('SIGKILL')
  return {
    pid: child.pid ?? 0,
    ended,
    said: () => stdout,
    kill,
    async succeeded(msMax) {
      try {
        const end = await inTime(`the end of ${role}`, ended, msMax)
        if (end.how === 0) return end.stdout
        throw new Error(`${role} ended with ${String(end.how)}: ${end.stderr}${end.stdout}`)
      } finally {
        kill()
      }
    },
  }
}
