// One Cassandra process: its folder, its configuration, its JVM and its readiness check.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import cassandra from 'cassandra-driver'
import { parse } from 'yaml'
import { cassandraFiles } from './cassandra-jars.ts'

const READY_MS_MAX = 150_000
const POLL_MS = 100
const QUERY_MS_MAX = 10_000
const LOG_CHARACTERS_MAX = 3000
const TOKENS = 2n ** 64n

/** The configuration of a node. */
export interface NodeOptions {
  readonly java: string
  readonly classPath: string
  /** JVM flags in addition to jvm.options, such as those for the class archive. */
  readonly jvmFlags: readonly string[]
  /** The existing folder of the node. */
  readonly home: string
  /** The address on which it listens for clients and other nodes. */
  readonly address: string
  /** The address that it announces to clients, if that differs. */
  readonly publicAddress: string
  readonly port: number
  readonly storagePort: number
  /** The addresses of all nodes of the cluster. */
  readonly addresses: readonly string[]
  /** The index of its address in `addresses`. */
  readonly place: number
  /** Settings that override cassandra.yaml. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** A started process, which may not be ready yet. */
export interface NodeProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** Resolves once it serves CQL and has the tokens of `peers` other nodes. Throws its log. */
  ready(peers: number): Promise<void>
  /** Kills the process (SIGKILL); resolves once it has exited. */
  kill(): Promise<void>
}

/** The path of the log of a node. */
export function logPathOf({ home }: Pick<NodeOptions, 'home'>): string {
  return join(home, 'system.log')
}

/** Writes the configuration, and starts the process with its existing data. */
export async function startNode(options: NodeOptions): Promise<NodeProcess> {
  const { home } = options
  await writeConfiguration(options)
  const log = openSync(logPathOf(options), 'a')
  const [command = '', ...args] = commandOf(options)
  // In its own session, so that Ctrl-C in the terminal stops the test and does not signal the node.
  const child = spawn(command, args, { cwd: home, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  let failed: Error | undefined
  child.on('error', (error) => {
    failed = error
  })
  const hasExited = () =>
    failed !== undefined || child.exitCode !== null || child.signalCode !== null
  const kill = async () => {
    if (hasExited()) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return {
    pid: child.pid ?? 0,
    child,
    async ready(peers) {
      const endMs = performance.now() + READY_MS_MAX
      for (;;) {
        if ((await countPeers(options)) >= peers) return
        if (hasExited() || performance.now() > endMs) {
          const cause =
            failed?.message ?? (hasExited() ? 'it exited' : 'it was not ready within the deadline')
          const lines = await readFile(logPathOf(options), 'utf8')
          throw new Error(`Cassandra: ${cause}; its log: ${lines.slice(-LOG_CHARACTERS_MAX)}`)
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    },
    kill,
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
  // JSON is valid YAML.
  const configuration = { ...shared, ...own, ...options.settings }
  await writeFile(join(conf, 'cassandra.yaml'), JSON.stringify(configuration, undefined, 2))
}

/**
 * The command line. The node is killed when its parent process dies. It must not lock its memory,
 * as a process of root may, because that touches every page at the start.
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
 * The number of other nodes whose tokens the node has; -1 while it is unavailable. A node opens its
 * port before it has discovered the others, and a keyspace created then has too few replicas.
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
    socketOptions: { connectTimeout: QUERY_MS_MAX, readTimeout: QUERY_MS_MAX },
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
