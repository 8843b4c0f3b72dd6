// Runs a role of the checkout as its own process for a test, as the npm scripts do, until it says
// that it is ready; ends it.
import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** A role that is ready. */
export interface RoleProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** Lines of its log so far, parsed. */
  readonly log: Record<string, unknown>[]
  /** The line by which it said that it is ready. */
  readonly ready: Readonly<Record<string, unknown>>
  /** Resolves to its exit code, or to the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Ends it by SIGTERM, and by SIGKILL if that takes too long. */
  stop(): Promise<void>
}

/** How to run it. */
export interface RoleOptions {
  readonly role: string
  readonly env: Readonly<Record<string, string>>
  /** Options of Node.js in the place of those of the npm scripts. */
  readonly nodeOptions?: readonly string[]
  /** What to run before Node.js, such as `strace` and its arguments. */
  readonly wrapper?: readonly string[]
  /** Told of the process before it is ready. */
  readonly onSpawn?: (child: ChildProcess) => void
}

const START_MS_MAX = 60_000
const STOP_MS_MAX = 20_000

/** Arguments of Node.js that run a role of the checkout, as the npm scripts do. */
export function roleArguments(...args: readonly string[]): string[] {
  const bounds = ['--max-old-space-size=512', '--max-semi-space-size=16']
  if (args[0] !== 'standalone') bounds.push('--single-threaded-gc') // as the script `curtail`
  return [...bounds, ...programArguments(args)]
}

function programArguments(args: readonly string[]): string[] {
  return ['--import', join(root, 'src/telemetry/tracing.ts'), join(root, 'src/main.ts'), ...args]
}

/** Starts it and waits until it says that it is ready. Throws with its output if it ends before. */
export async function startRole(options: RoleOptions): Promise<RoleProcess> {
  const { role, nodeOptions } = options
  const own = nodeOptions && [...nodeOptions, ...programArguments([role])]
  const [command = process.execPath, ...args] = [
    ...(options.wrapper ?? []),
    process.execPath,
    ...(own ?? roleArguments(role)),
  ]
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  options.onSpawn?.(child)
  const ended = new Promise<number | string>((resolve) => {
    child.on('exit', (code, signal) => {
      resolve(code ?? signal ?? 'unknown')
    })
  })
  const { log, ready } = readLog({ role, child, ended })
  return {
    pid: child.pid ?? 0,
    child,
    log,
    ready: await ready,
    ended,
    async stop() {
      child.kill('SIGTERM')
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await ended
      clearTimeout(forced)
    },
  }
}

/** Collects the log's lines and waits for the one that says `ready`. */
function readLog({
  role,
  child,
  ended,
}: {
  role: string
  child: ChildProcess
  ended: Promise<number | string>
}): { log: Record<string, unknown>[]; ready: Promise<Record<string, unknown>> } {
  const log: Record<string, unknown>[] = []
  let rest = ''
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${role} was not ready in time: ${errors}`))
    }, START_MS_MAX)
    child.stdout?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const entry = JSON.parse(line) as Record<string, unknown>
        log.push(entry)
        if (entry['msg'] !== 'ready') continue
        clearTimeout(late)
        resolve(entry)
      }
    })
    void ended.then((how) => {
      clearTimeout(late)
      // Whoever talks to it sees only that nobody answers: say why.
      if (typeof how === 'number' && how > 0) process.stderr.write(`${role} ended: ${errors}\n`)
      reject(new Error(`${role} ended (${String(how)}) before it was ready: ${errors}`))
    })
  })
  return { log, ready }
}
