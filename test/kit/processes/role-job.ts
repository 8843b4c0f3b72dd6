// Runs a role that exits by itself, such as `refill` or `migrate`, as a process for a test, which
// can kill it at any moment.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inherited, roleArguments } from './role-process.ts'
import { withinDeadline } from '../wait-for.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** The result of a job. */
interface JobResult {
  /** The exit code, or the signal that terminated the process. */
  readonly exitStatus: number | string
  readonly stdout: string
  readonly stderr: string
}

/** A running role. */
export interface Job {
  readonly pid: number
  readonly exited: Promise<JobResult>
  /** Its output on stdout so far. */
  output(): string
  /** Kills the process if it still runs. */
  kill(): void
  /** Resolves to its stdout once it has exited with 0. Throws with its output otherwise. */
  succeeded(msMax: number): Promise<string>
}

/** Starts the role as a process. */
export function startJob(options: {
  role: string
  env: Readonly<Record<string, string>>
  args?: readonly string[]
}): Job {
  const { role, env, args = [] } = options
  const commandLine = [
    'setpriv',
    '--pdeathsig',
    'KILL',
    process.execPath,
    ...roleArguments(role, ...args),
  ]
  const [command = '', ...rest] = commandLine
  const child = spawn(command, rest, {
    cwd: root,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const exited = new Promise<JobResult>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({ exitStatus: code ?? signal ?? 'unknown', stdout, stderr })
    })
  })
  const kill = () => void child.kill('SIGKILL')
  return {
    pid: child.pid ?? 0,
    exited,
    output: () => stdout,
    kill,
    async succeeded(msMax) {
      try {
        const result = await withinDeadline(`the exit of ${role}`, exited, msMax)
        if (result.exitStatus === 0) return result.stdout
        const output = `${result.stderr}${result.stdout}`
        throw new Error(`${role} exited with ${String(result.exitStatus)}: ${output}`)
      } finally {
        kill()
      }
    },
  }
}
