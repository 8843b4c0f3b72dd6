// One Cassandra process for tests: its folder and configuration, its JVM, and a check that it is
// ready. Of other nodes it has only the addresses.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import cassandra from 'cassandra-driver'
import { parse } from 'yaml'
import { cassandraFiles } from './cassandra-jars.ts'

const READY_MS_MAX = 150_000
const LOOK_EVERY_MS = 100
const STOP_MS_MAX = 30_000
const ASK_MS_MAX = 10_000
const LOG_CHARACTERS_MAX = 3000
const TOKENS = 2n ** 64n

/** What a node needs to be started. */
export interface NodeOptions {
  readonly java: string
  readonly classPath: string
  /** Flags of the JVM besides those of its file, such as for its archive of classes. */
  readonly jvmFlags: readonly string[]
  /** Its own folder, which exists. */
  readonly home: string
  /** Where it listens, to clients and to other nodes. */
  readonly address: string
  /** The address that it announces to clients, if that differs. */
  readonly publicAddress: string
  readonly port: number
  readonly storagePort: number
  /** Addresses of all nodes, itself among them, and its place there. */
  readonly addresses: readonly string[]
  readonly place: number
  /** Overrides of cassandra.yaml. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** A process that has been started; it need not be ready. */
export interface NodeProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** Resolves when it serves CQL and has the tokens of `peers` others. Throws its log. */
  ready(peers: number): Promise<void>
  /** Stops it gracefully, like an operator. */
  end(): Promise<void>
  /** Kills it. */
  kill(): Promise<void>
}

/** Where a node writes its log. */
export function logPathOf({ home }: Pick<NodeOptions, 'home'>): string {
  return join(home, 'system.log')
}

/** Writes the configuration, and starts the process on its data. */
export async function startNode(options: NodeOptions): Promise<NodeProcess> {
  const { home } = options
  await writeConfiguration(options)
  const log = openSync(logPathOf(options), 'a')
  const [command = '', ...args] = commandOf(options)
  // Its own session: a Ctrl-C in the terminal stops the test, and does not signal the node.
  const child = spawn(command, args, { cwd: home, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  let failed: Error | undefined
  child.on('error', (error) => {
    failed = error
  })
  const isGone = () => failed !== undefined || child.exitCode !== null || child.signalCode !== null
  const end = async (signal: NodeJS.Signals) => {
    if (isGone()) return
    const gone = once(child, 'exit')
    child.kill(signal)
    child.kill('SIGCONT')
    const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await gone
    clearTimeout(forced)
  }
  return {
    pid: child.pid ?? 0,
    child,
    async ready(peers) {
      const endMs = performance.now() + READY_MS_MAX
      for (;;) {
        const known = await countPeers(options)
        if (known >= peers) return
        const late = performance.now() > endMs
        if (isGone() || late) {
          const why =
            failed?.message ?? (isGone() ? 'it exited' : 'it was not ready within the deadline')
          const text = await readFile(logPathOf(options), 'utf8')
          throw new Error(`Cassandra: ${why}; its log: ${text.slice(-LOG_CHARACTERS_MAX)}`)
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
      }
    },
    end: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

async function writeConfiguration(options: NodeOptions): Promise<void> {
  const { home, address, publicAddress, addresses, place } = options
  const conf = join(home, 'conf')
  await mkdir(conf, { recursive: true })
  for (const name of ['tmp', 'triggers']) await mkdir(join(home, name), { recursive: true })
  for (const name of ['logback.xml', 'cassandra-rackdc.properties']) {
    await copyFile(join(cassandraFiles, name), join(conf, name))
  }
  const shared = parse(await readFile(join(cassandraFiles, 'cassandra.yaml'), 'utf8')) as object
  const token = 1n - TOKENS / 2n + (BigInt(place) * TOKENS) / BigInt(addresses.length)
  const seeds = addresses.map((one) => `${one}:${String(options.storagePort)}`).join(',')
  const own = {
    listen_address: address,
    rpc_address: address,
    ...(publicAddress !== address && { broadcast_rpc_address: publicAddress }),
    native_transport_port: options.port,
    storage_port: options.storagePort,
    initial_token: String(token),
    seed_provider: [
      { class_name: 'org.apache.cassandra.locator.SimpleSeedProvider', parameters: [{ seeds }] },
    ],
    data_file_directories: [join(home, 'data')],
    commitlog_directory: join(home, 'commitlog'),
    saved_caches_directory: join(home, 'saved_caches'),
    hints_directory: join(home, 'hints'),
    cdc_raw_directory: join(home, 'cdc_raw'),
  }
  // JSON is YAML too.
  const text = JSON.stringify({ ...shared, ...own, ...options.settings }, undefined, 2)
  await writeFile(join(conf, 'cassandra.yaml'), text)
}

/**
 * The command line. The node is killed when whoever started it dies, and it may not lock its memory
 * (which root's may, and then touches every page at its start).
 */
function commandOf({ java, classPath, jvmFlags, home }: NodeOptions): string[] {
  const noLock = process.getuid?.() === 0 ? ['--bounding-set=-ipc_lock'] : []
  const conf = join(home, 'conf')
  return [
    ...['setpriv', '--pdeathsig', 'KILL', ...noLock],
    ...[java, `@${join(cassandraFiles, 'jvm.options')}`, ...jvmFlags],
    `-Djava.io.tmpdir=${join(home, 'tmp')}`,
    `-Djna.tmpdir=${join(home, 'tmp')}`,
    `-Dcassandra.config=file://${join(conf, 'cassandra.yaml')}`,
    `-Dcassandra-rackdc.properties=file://${join(conf, 'cassandra-rackdc.properties')}`,
    `-Dcassandra.storagedir=${home}`,
    `-Dcassandra.triggers_dir=${join(home, 'triggers')}`,
    `-Dlogback.configurationFile=${join(conf, 'logback.xml')}`,
    ...['-cp', classPath, 'org.apache.cassandra.service.CassandraDaemon'],
  ]
}

/**
 * How many other nodes' tokens the node has; -1 while it is unavailable. It opens its port before
 * it has discovered the others, and a keyspace created at that moment has too few replicas.
 */
async function countPeers({ publicAddress, port, settings }: NodeOptions): Promise<number> {
  const { AllowListPolicy, RoundRobinPolicy } = cassandra.policies.loadBalancing
  const loadBalancing = new AllowListPolicy(new RoundRobinPolicy(), [
    `${publicAddress}:${String(port)}`,
  ])
  const hasTls = 'client_encryption_options' in settings
  const client = new cassandra.Client({
    contactPoints: [publicAddress],
    protocolOptions: { port },
    localDataCenter: 'datacenter1',
    credentials: { username: 'cassandra', password: 'cassandra' },
    policies: { loadBalancing },
    ...(hasTls && { sslOptions: { rejectUnauthorized: false } }),
    socketOptions: { connectTimeout: ASK_MS_MAX, readTimeout: ASK_MS_MAX },
  })
  try {
    const { rows } = await client.execute('SELECT tokens FROM system.peers_v2')
    return rows.filter(({ tokens }) => tokens !== null).length
  } catch {
    return -1 // not ready yet
  } finally {
    await client.shutdown()
  }
}
