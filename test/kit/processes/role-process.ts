// Starts a role of the checkout as a process for a test, like the npm scripts do, waits until it is
// ready, and stops it.
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** A role that is ready. */
export interface RoleProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** The parsed lines of its log so far. */
  readonly log: Record<string, unknown>[]
  /** The log line `ready`. */
  readonly ready: Readonly<Record<string, unknown>>
  /** Resolves to its exit code, or to the terminating signal, once its output has been read. */
  readonly exited: Promise<number | string>
  /** Stops it with SIGTERM, and with SIGKILL after a timeout. */
  stop(): Promise<void>
}

/** How to run a role. */
export interface RoleOptions {
  readonly role: string
  readonly env: Readonly<Record<string, string>>
  /** Options of Node.js that replace those of the npm scripts. */
  readonly nodeOptions?: readonly string[]
  /** The entry file of a bundle. @default the program of the checkout */
  readonly entryFile?: string
  /** A command that runs Node.js, such as `strace` and its arguments. */
  readonly wrapper?: readonly string[]
  /** Called with the process before it is ready. */
  readonly onSpawn?: (child: ChildProcess) => void
}

const START_MS_MAX = 60_000
const STOP_MS_MAX = 20_000
const UNREAD_MS_MAX = 5000

/** The only variables that processes inherit: with the cache, they start in half the CPU time. */
export const inherited = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
} as const

/** The arguments of Node.js that run a role of the checkout, as in the npm scripts. */
export function roleArguments(...args: readonly string[]): string[] {
  const bounds = ['--max-old-space-size=512', '--max-semi-space-size=16']
  if (args[0] !== 'standalone') bounds.push('--single-threaded-gc') // like the script `curtail`
  return [...bounds, ...programArguments(args)]
}

function programArguments(args: readonly string[]): string[] {
  const preloads = ['src/compile-cache.js', 'src/telemetry/tracing.ts']
  const imports = preloads.flatMap((file) => ['--import', join(root, file)])
  return [...imports, join(root, 'src/main.ts'), ...args]
}

/** Starts a role and waits until it is ready. Throws with its output if it exits before. */
export async function startRole(options: RoleOptions): Promise<RoleProcess> {
  const { role, nodeOptions, entryFile } = options
  const program = entryFile === undefined ? programArguments([role]) : [entryFile, role]
  const own = nodeOptions && [...nodeOptions, ...program]
  const [command = process.execPath, ...args] = [
    ...(options.wrapper ?? []),
    process.execPath,
    ...(own ?? roleArguments(role)),
  ]
  const child = spawn(command, args, {
    cwd: root,
    env: { ...inherited, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  options.onSpawn?.(child)
  const exited = exitOf(child)
  const { log, ready } = readLog({ role, child, exited })
  return {
    pid: child.pid ?? 0,
    child,
    log,
    ready: await ready,
    exited,
    async stop() {
      child.kill('SIGTERM')
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await exited
      clearTimeout(forced)
    },
  }
}

/** The exit code, or the terminating signal, once the output of the process has been read. */
function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      const status = code ?? signal ?? 'unknown'
      // A test may have stopped reading, and a child of the process may have its pipes.
      const unread = setTimeout(resolve, UNREAD_MS_MAX, status)
      child.on('close', () => {
        clearTimeout(unread)
        resolve(status)
      })
    })
  })
}

/** Collects the lines of the log and waits for the line `ready`. */
function readLog({
  role,
  child,
  exited,
}: {
  role: string
  child: ChildProcess
  exited: Promise<number | string>
}): { log: Record<string, unknown>[]; ready: Promise<Record<string, unknown>> } {
  const log: Record<string, unknown>[] = []
  let rest = ''
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${role} was not ready within ${START_MS_MAX} ms: ${errors}`))
    }, START_MS_MAX)
    child.stdout?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const entry = JSON.parse(line) as Record<string, unknown>
        log.push(entry)
        if (entry['msg'] !== 'ready') continue
        clearTimeout(timer)
        resolve(entry)
      }
    })
    void exited.then((status) => {
      clearTimeout(timer)
      // A client of the process would report only ECONNREFUSED.
      if (typeof status === 'number' && status > 0)
        process.stderr.write(`${role} exited: ${errors}\n`)
      reject(new Error(`${role} exited (${String(status)}) before it was ready: ${errors}`))
    })
  })
  return { log, ready }
}
