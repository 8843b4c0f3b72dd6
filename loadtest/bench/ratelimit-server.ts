// Starts a limiter for its benchmark, ours or the reference, on the server's core, and its Redis on
// the generator's core. Both limiters get the same environment variables, those of the reference.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitFor } from '../../test/kit/wait-for.ts'
import { freePort } from '../../test/dependencies/free-ports.ts'
import { startRedis } from '../../test/dependencies/redis.ts'
import { openGrpcConnection } from './grpc-connection.ts'
import { onServerCore } from './pinning.ts'
import { benchRules, requestsOf } from './ratelimit-calls.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const START_MS_MAX = 20_000
const STOP_MS_MAX = 10_000
const OUTPUT_CHARACTERS_MAX = 4000

/** The decisions, one per descriptor of a call; `fallbacks`: those without Redis. */
export interface Decisions {
  readonly all: number
  readonly fallbacks: number
}

/** A ready limiter. */
export interface LimiterServer {
  readonly port: number
  readonly pid: number
  readonly redisPid: number
  /** Its decisions so far, from its metrics; the reference does not count them. */
  decisions(): Promise<Decisions>
  /** Stops the limiter and its Redis. */
  stop(): Promise<void>
}

/** The options of a limiter. */
interface LimiterOptions {
  /** 0: no local cache. */
  readonly localCacheBytes: number
  /** The content of its rules file. @default `benchRules` */
  readonly rules?: string
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** The command prefix. @default `onServerCore` */
  readonly wrapper?: readonly string[]
}

/** Starts the limiter that `argv` runs. */
export async function startLimiter(
  argv: readonly string[],
  options: LimiterOptions,
): Promise<LimiterServer> {
  const folder = await mkdtemp(join(tmpdir(), 'curtail-bench-'))
  const rules = join(folder, 'ratelimit', 'config')
  await mkdir(rules, { recursive: true })
  await writeFile(join(rules, 'bench.yaml'), options.rules ?? benchRules)
  const redis = await startRedis()
  const port = await freePort()
  const env = await environmentOf({ folder, port, redisPort: redis.port })
  const [command = '', ...args] = [...(options.wrapper ?? onServerCore), ...argv]
  const cacheBytes = String(options.localCacheBytes)
  const child = spawn(command, args, {
    cwd: root,
    env: { ...env, LOCAL_CACHE_SIZE_IN_BYTES: cacheBytes, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const take = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS_MAX)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  let hasExited = false
  const exited = new Promise<void>((resolve) => {
    child.on('error', take)
    child.on('close', () => {
      hasExited = true
      resolve()
    })
  })
  const stop = async () => {
    child.kill('SIGTERM')
    const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await exited
    clearTimeout(forced)
    await redis.close()
    await rm(folder, { recursive: true, force: true })
  }
  const isReady = () => {
    if (hasExited) throw new Error('the limiter exited')
    return isResponding(port)
  }
  try {
    await waitFor('a response', isReady, START_MS_MAX)
  } catch (error) {
    await stop()
    throw new Error(`Cannot start ${argv[0] ?? ''}: ${output}`, { cause: error })
  }
  const decisions = () => countDecisions(env.PROMETHEUS_ADDR)
  return { port, pid: child.pid ?? 0, redisPid: redis.pid(), decisions, stop }
}

type Environment = Readonly<Record<'PROMETHEUS_ADDR', string>> & NodeJS.ProcessEnv

async function countDecisions(address: string): Promise<Decisions> {
  const text = await (await fetch(`http://${address}/metrics`)).text()
  const counts = [
    ...text.matchAll(/^curtail_limiter_decisions_total\{source="(\w+)",.*\} (\d+)$/gm),
  ]
  const sumOf = (some: typeof counts) => some.reduce((sum, [, , count]) => sum + Number(count), 0)
  const fallbacks = sumOf(counts.filter(([, source]) => source === 'fallback'))
  return { all: sumOf(counts), fallbacks }
}

async function environmentOf(given: {
  readonly folder: string
  readonly port: number
  readonly redisPort: number
}): Promise<Environment> {
  const [http, debug, prometheus] = [await freePort(), await freePort(), await freePort()]
  return {
    PATH: process.env['PATH'],
    LOG_LEVEL: 'warn',
    USE_STATSD: 'false',
    USE_PROMETHEUS: 'true',
    PROMETHEUS_ADDR: `127.0.0.1:${prometheus}`,
    HOST: '127.0.0.1',
    PORT: String(http),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(debug),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(given.port),
    ADMIN_PORT: '0',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${given.redisPort}`,
    RUNTIME_ROOT: given.folder,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
  }
}

async function isResponding(port: number): Promise<boolean> {
  const [firstRequest = Buffer.alloc(0)] = requestsOf('one')
  const nothing = () => undefined
  const open = openGrpcConnection({ port, firstRequest, onResponse: nothing, onFault: nothing })
  return open.then(
    (connection) => {
      connection.close()
      return true
    },
    () => false,
  )
}
