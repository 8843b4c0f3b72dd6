// The dependency `redis-server`: servers on free loopback ports, without persistence, independent
// of servers of the machine.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { withinDeadline, waitFor } from '../kit/wait-for.ts'
import { findAptDependency } from './apt.ts'
import { freePort } from './free-ports.ts'

const run = promisify(execFile)
const SLOTS = 16_384

/** A running server. */
export interface RedisServer {
  readonly port: number
  readonly pid: () => number
  /** Suspends the server, like a machine that hangs. */
  stop(): void
  resume(): void
  /** Kills the server; resolves once the process has exited. */
  kill(): Promise<void>
  /** Restarts the server on its port, without data. */
  restart(): Promise<void>
  /** Kills the server and deletes its folder. */
  close(): Promise<void>
}

/** The port and the process of a server. */
interface RedisOptions {
  /** @default a free port */
  readonly port?: number
  readonly isReady?: RegExp
  readonly isTls?: boolean
  /** The program. @default the redis-server of the distribution */
  readonly program?: string
  /** A command that runs the server, such as `setsid`. */
  readonly wrapper?: readonly string[]
  /** Called with each process. */
  readonly onSpawn?: (child: ChildProcess) => void
}

/** Starts a server; `args` are additional arguments, such as `--maxmemory 2mb`. */
export async function startRedis(
  args: readonly string[] = [],
  given: RedisOptions = {},
): Promise<RedisServer> {
  const program = given.program ?? (await findAptDependency('redis-server'))
  const [command, ...before] = [...(given.wrapper ?? []), program]
  const port = given.port ?? (await freePort())
  const dir = mkdtempSync(join(tmpdir(), 'curtail-redis-'))
  const own = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]
  const listens = given.isTls === true ? ['--port', '0', '--tls-port'] : ['--port']
  const isReady = given.isReady ?? /Ready to accept connections/
  const isSentinel = args.includes('--sentinel')
  const settings = isSentinel ? [] : [...own, ...listens, String(port)]
  const line = [...before, ...settings, ...args]
  const { onSpawn } = given
  const start = () => startProcess({ command, line, isReady, onSpawn })
  let child = await start()
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return {
    port,
    pid: () => child.pid ?? 0,
    stop: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill,
    async restart() {
      await kill()
      child = await start()
    },
    async close() {
      await kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function startProcess(given: {
  command: string
  line: readonly string[]
  isReady: RegExp
  onSpawn: RedisOptions['onSpawn']
}) {
  const { command, line, isReady } = given
  const child = spawn(command, line, { stdio: ['ignore', 'pipe', 'inherit'] })
  given.onSpawn?.(child)
  const killIt = () => void child.kill('SIGKILL')
  process.once('exit', killIt)
  child.once('exit', () => process.removeListener('exit', killIt))
  let output = ''
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      if (output.length < 65_536) output += data.toString()
      if (isReady.test(output)) resolve()
    })
    child.once('error', reject)
    child.once('exit', () => {
      reject(new Error(`redis-server exited: ${output}`))
    })
  })
  await withinDeadline('redis-server', ready).catch((error: unknown) => {
    killIt()
    throw error
  })
  return child
}

/** A client that ignores connection errors. */
export function clientOf(port: number, options: Record<string, unknown> = {}): Redis {
  const client = new Redis({ host: '127.0.0.1', port, disconnectTimeout: 100, ...options })
  client.on('error', () => undefined) // tests stop servers with connected clients
  return client
}

/** Starts a cluster of three masters, each with these arguments. */
export async function startCluster(args: readonly string[] = []): Promise<readonly RedisServer[]> {
  const starts = [0, 1, 2].map(async () => {
    const bus = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(bus)]
    const server = await startRedis([...cluster, '--cluster-node-timeout', '2000', ...args])
    return { server, bus }
  })
  try {
    const nodes = await Promise.all(starts)
    await joinCluster(nodes)
    return nodes.map(({ server }) => server)
  } catch (error) {
    // A remaining server would prevent the exit of the tests.
    for (const start of await Promise.allSettled(starts)) {
      if (start.status === 'fulfilled') await start.value.server.close()
    }
    throw error
  }
}

async function joinCluster(nodes: readonly { server: RedisServer; bus: number }[]): Promise<void> {
  const clients = nodes.map(({ server }) => clientOf(server.port))
  try {
    await Promise.all(
      clients.map(async (client, at) => {
        const from = Math.ceil((SLOTS * at) / nodes.length)
        const to = Math.ceil((SLOTS * (at + 1)) / nodes.length) - 1
        await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
      }),
    )
    for (const { server, bus } of nodes.slice(1)) {
      await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus)
    }
    await waitFor('the cluster', async () => {
      const states = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO')))
      return states.every((state) => /cluster_state:ok[^]*known_nodes:3/.test(String(state)))
    })
  } finally {
    for (const client of clients) client.disconnect()
  }
}

/**
 * The deadline of a failover: a sentinel that stalls for 2 s, such as with its machine, starts no
 * failover for 30 s.
 */
export const FAILOVER_MS_MAX = 60_000

/** Starts a master, its replica, and a sentinel that monitors them by the name `master`. */
export async function startSentinel(): Promise<{
  readonly master: RedisServer
  readonly replica: RedisServer
  readonly sentinel: RedisServer
  readonly close: () => Promise<void>
}> {
  const master = await startRedis()
  const synced = /finished with success/i
  const replicaOf = ['--replicaof', `127.0.0.1 ${String(master.port)}`, '--repl-diskless-load']
  const replica = await startRedis([...replicaOf, 'swapdb'], { isReady: synced })
  const dir = await mkdtemp(join(tmpdir(), 'curtail-sentinel-'))
  const port = await freePort()
  const file = join(dir, 'sentinel.conf')
  const lines = [
    `port ${String(port)}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor master 127.0.0.1 ${String(master.port)} 1`,
    'sentinel down-after-milliseconds master 500',
    'sentinel failover-timeout master 2000',
  ]
  await writeFile(file, `${lines.join('\n')}\n`)
  const sentinel = await startRedis([file, '--sentinel'], { port, isReady: /\+slave slave/ })
  const close = async () => {
    for (const server of [sentinel, replica, master]) await server.close()
    await rm(dir, { recursive: true })
  }
  return { master, replica, sentinel, close }
}

/** Creates a self-signed certificate for 127.0.0.1 and its key. Returns their paths. */
export async function createCertificate(): Promise<{
  readonly cert: string
  readonly key: string
  readonly close: () => Promise<void>
}> {
  const openssl = await findAptDependency('openssl', ['version'])
  const dir = await mkdtemp(join(tmpdir(), 'curtail-tls-'))
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = ['-subj', '/CN=redis', '-addext', 'subjectAltName=IP:127.0.0.1']
  const files = ['-keyout', key, '-out', cert]
  await run(openssl, ['req', '-x509', '-days', '2', ...kind, ...subject, ...files])
  return { cert, key, close: () => rm(dir, { recursive: true }) }
}
