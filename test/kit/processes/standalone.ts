// Starts a standalone process for a test, on free ports and a temporary folder, and stops it.
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RoleProcess, startRole } from './role-process.ts'

/** A standalone process that is ready. */
export interface Standalone extends RoleProcess {
  readonly baseUrl: string
  /** The base of its short links, from its log. */
  readonly linkBase: string
  readonly adminUrl: string
  readonly port: number
  readonly dataDir: string
  /** Stops it with SIGTERM, and with SIGKILL after a timeout; deletes its folder. */
  stop(): Promise<void>
}

/** How to start it. */
export interface StandaloneOptions {
  readonly env?: Readonly<Record<string, string>>
  /** A folder that outlives the process; the caller deletes it. */
  readonly dataDir?: string
  /** A command that runs Node.js, such as `strace` and its arguments. */
  readonly wrapper?: readonly string[]
  /** Called with the process before it is ready. */
  readonly onSpawn?: (child: ChildProcess) => void
}

/** Starts it and waits until it is ready. Throws with its output if it exits before. */
export async function startStandalone(options: StandaloneOptions = {}): Promise<Standalone> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'curtail-')))
  const defaults = { PORT: '0', ADMIN_PORT: '0', RATE_LIMITS: 'off' }
  const env: Record<string, string> = { ...defaults, ...options.env, DATA_DIR: dataDir }
  const running = await startRole({ ...options, role: 'standalone', env })
  const { port, adminPort, baseUrl } = running.ready as Record<string, string | number>
  const linkBase = String(baseUrl)
  return {
    ...running,
    baseUrl: env['BASE_URL'] ?? linkBase.replace('localhost', '127.0.0.1'),
    linkBase,
    adminUrl: `http://127.0.0.1:${String(adminPort)}`,
    port: Number(port),
    dataDir,
    async stop() {
      await running.stop()
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
    },
  }
}
