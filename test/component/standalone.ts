// Starts the real standalone process for a test, on free ports and a folder of its own; ends it.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** A standalone process that is ready. */
export interface Standalone {
  readonly baseUrl: string
  /** The base of its short links, as it says itself. */
  readonly linkBase: string
  readonly adminUrl: string
  readonly port: number
  readonly pid: number
  readonly dataDir: string
  readonly child: ChildProcess
  /** Lines of its log so far, parsed. */
  readonly log: Record<string, unknown>[]
  /** Resolves to its exit code, or to the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Ends it by SIGTERM, and by SIGKILL if that takes too long; deletes its folder. */
  stop(): Promise<void>
}

/** How to start it. */
export interface StandaloneOptions {
  readonly env?: Readonly<Record<string, string>>
  /** A folder that outlives the process; the caller deletes it. */
  readonly dataDir?: string
  /** What to run before Node.js, such as `strace` and its arguments. */
  readonly wrapper?: readonly string[]
  /** Told of the process before it is ready. */
  readonly onSpawn?: (child: ChildProcess) => void
}

const START_MS_MAX = 20_000
const STOP_MS_MAX = 20_000

/** Arguments of Node.js that run a role of the checkout, as the npm scripts do. */
export function roleArguments(...args: readonly string[]): string[] {
  const bounds = ['--max-old-space-size=512', '--max-semi-space-size=16']
  const preload = ['--import', join(root, 'src/process/tracing.ts')]
  return [...bounds, ...preload, join(root, 'src/main.ts'), ...args]
}

/** Starts it and waits until it says that it is ready. Throws with its output if it ends before. */
export async function startStandalone(options: StandaloneOptions = {}): Promise<Standalone> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'curtail-')))
  const [command = process.execPath, ...args] = [
    ...(options.wrapper ?? []),
    process.execPath,
    ...roleArguments('standalone'),
  ]
  const defaults = { PORT: '0', ADMIN_PORT: '0', RATE_LIMITS: 'off' }
  const env: Record<string, string> = { ...defaults, ...options.env, DATA_DIR: dataDir }
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  options.onSpawn?.(child)
  const ended = new Promise<number | string>((resolve) => {
    child.on('exit', (code, signal) => {
      resolve(code ?? signal ?? 'unknown')
    })
  })
  const { log, ready } = readLog(child, ended)
  const { port, adminPort, baseUrl } = await ready
  return {
    baseUrl: env['BASE_URL'] ?? baseUrl.replace('localhost', '127.0.0.1'),
    linkBase: baseUrl,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    port,
    pid: child.pid ?? 0,
    dataDir,
    child,
    log,
    ended,
    async stop() {
      child.kill('SIGTERM')
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await ended
      clearTimeout(forced)
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

interface Ready {
  readonly port: number
  readonly adminPort: number
  readonly baseUrl: string
}

/** Collects the log's lines and waits for the one that says `ready`. */
function readLog(
  child: ChildProcess,
  ended: Promise<number | string>,
): { log: Record<string, unknown>[]; ready: Promise<Ready> } {
  const log: Record<string, unknown>[] = []
  let rest = ''
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const ready = new Promise<Ready>((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`standalone was not ready in time: ${errors}`))
    }, START_MS_MAX)
    child.stdout?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const entry = JSON.parse(line) as Record<string, unknown>
        log.push(entry)
        if (entry['msg'] !== 'ready') continue
        clearTimeout(late)
        resolve(entry as unknown as Ready)
      }
    })
    void ended.then((how) => {
      clearTimeout(late)
      reject(new Error(`standalone ended (${String(how)}) before it was ready: ${errors}`))
    })
  })
  return { log, ready }
}
