// The dependency `cassandra`: clusters of one or three real nodes on their own addresses, with
// their data in memory. Processes and data are removed even if the test process is killed.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findArchive } from './cassandra-archive.ts'
import { findCassandraJars } from './cassandra-jars.ts'
import { logPathOf, type NodeOptions, type NodeProcess, startNode } from './cassandra-node.ts'
import { cqlFrameLength, type FaultProxy, startFaultProxy } from '../kit/fault-proxy.ts'
import { findJava } from './java.ts'
import { reserveAddresses, type LoopbackBlock } from './loopback-block.ts'

/** A file system in memory. */
const MEMORY_DISK = '/dev/shm'
const MEMORY_BYTES_MIN = 2 * 1024 ** 3
/** The last octets of the addresses of nodes, and of their proxies. */
const NODE_OCTETS = [11, 12, 13]
const PROXY_OCTETS = [21, 22, 23]
/** A large heap and full compilation, as in production; jvm.options prefers a fast start. */
const PRODUCTION_FLAGS =
  '-Xms2g -Xmx2g -XX:-UseSerialGC -XX:+UseG1GC -XX:TieredStopAtLevel=4'.split(' ')

/** One node of a cluster. */
interface CassandraNode {
  /** The address for clients: that of the proxy of the node, if it has one. */
  readonly address: string
  readonly pid: () => number
  /** The path of its log. */
  readonly logPath: string
  /** Kills the node (SIGKILL), like a crash; resolves once the process has exited. */
  kill(): Promise<void>
  /** Suspends the node (SIGSTOP), like a machine that hangs. */
  pause(): void
  resume(): void
  /** Restarts the node with its data; resolves once it serves CQL. */
  restart(): Promise<void>
}

/** A ready cluster: every node serves CQL and has discovered the others. */
export interface CassandraCluster {
  /** Addresses for clients, without the port. */
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: 'datacenter1'
  readonly nodes: readonly CassandraNode[]
  /** The node with this index. */
  node(at: number): CassandraNode
  /** The proxy of the node with this index. Throws if the cluster has no proxies. */
  proxy(at: number): FaultProxy
  /** Stops every node and deletes its data. */
  stop(): Promise<void>
}

/** The size and the settings of a cluster. */
export interface CassandraOptions {
  readonly nodes: 1 | 3
  /** Whether clients connect to each node through a fault proxy. */
  readonly proxied?: boolean
  /**
   * Settings that override cassandra.yaml, such as `{ paxos_variant: 'v1' }`. With authentication,
   * the superuser is `cassandra` with the password `cassandra`.
   */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Additional JVM flags. */
  readonly jvmFlags?: readonly string[]
  /** Whether the JVM has production flags, with a heap of 2 GB per node, for measurements. */
  readonly isProductionJvm?: boolean
}

/** Starts a cluster; downloads its dependencies first. Throws the reason if that fails. */
export async function startCassandra(options: CassandraOptions): Promise<CassandraCluster> {
  if (process.platform !== 'linux') throw new Error('Cassandra can be started only on Linux')
  const java = await findJava()
  const classPath = await findCassandraJars()
  const archiveFlags = await findArchive(java, classPath)
  const isProxied = options.proxied === true
  const nodeOctets = NODE_OCTETS.slice(0, options.nodes)
  const proxyOctets = isProxied ? PROXY_OCTETS.slice(0, options.nodes) : []
  const block = await reserveAddresses([...nodeOctets, ...proxyOctets])
  const home = await mkdtemp(join(await dataFolder(), 'curtail-cassandra-'))
  const remover = removeOnExit(home)
  const members: Member[] = []
  const proxies: FaultProxy[] = []
  const stop = async () => {
    await Promise.all(members.map(({ kill }) => kill()))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await remover.removeNow()
    await block.release()
  }
  try {
    const base = {
      java: java.path,
      classPath,
      jvmFlags: [
        ...archiveFlags,
        ...(options.isProductionJvm === true ? PRODUCTION_FLAGS : []),
        ...(options.jvmFlags ?? []),
      ],
      settings: options.settings ?? {},
    }
    const plans = planNodes({ base, block, home, nodes: options.nodes })
    if (isProxied) proxies.push(...(await Promise.all(plans.map(startProxy))))
    members.push(...(await Promise.all(plans.map(startMember))))
    await Promise.all(members.map(({ ready }) => ready()))
    return describeCluster({ members, proxies, port: block.port, stop })
  } catch (error) {
    await stop()
    throw error
  }
}

function describeCluster(given: {
  members: readonly Member[]
  proxies: readonly FaultProxy[]
  port: number
  stop: () => Promise<void>
}): CassandraCluster {
  const { members, proxies, port, stop } = given
  const at = <T>(all: readonly T[], place: number, what: string): T => {
    const one = all[place]
    if (one === undefined) throw new Error(`the cluster has no ${what} ${String(place)}`)
    return one
  }
  return {
    contactPoints: members.map(({ node }) => node.address),
    port,
    localDc: 'datacenter1',
    nodes: members.map(({ node }) => node),
    node: (place) => at(members, place, 'node').node,
    proxy: (place) => at(proxies, place, 'proxy'),
    stop,
  }
}

function planNodes(given: {
  base: Pick<NodeOptions, 'java' | 'classPath' | 'jvmFlags' | 'settings'>
  block: LoopbackBlock
  home: string
  nodes: number
}): NodeOptions[] {
  const { base, block, home, nodes } = given
  const addresses = block.addresses.slice(0, nodes)
  return addresses.map((address, place) => ({
    ...base,
    home: join(home, String(place)),
    address,
    publicAddress: block.addresses[nodes + place] ?? address,
    port: block.port,
    storagePort: block.storagePort,
    addresses,
    place,
  }))
}

function startProxy({ address, publicAddress, port }: NodeOptions): Promise<FaultProxy> {
  const at = { host: publicAddress, port }
  return startFaultProxy({ at, to: { host: address, port }, messageLength: cqlFrameLength })
}

interface Member {
  readonly node: CassandraNode
  readonly ready: () => Promise<void>
  readonly kill: () => Promise<void>
}

async function startMember(plan: NodeOptions): Promise<Member> {
  await mkdir(plan.home)
  let running: NodeProcess = await startNode(plan)
  const kill = () => running.kill()
  const ready = () => running.ready(plan.addresses.length - 1)
  const node = {
    address: plan.publicAddress,
    pid: () => running.pid,
    logPath: logPathOf(plan),
    kill,
    pause: () => void running.child.kill('SIGSTOP'),
    resume: () => void running.child.kill('SIGCONT'),
    async restart() {
      await kill()
      running = await startNode(plan)
      await ready()
    },
  }
  return { node, ready, kill }
}

/** The parent folder of the data: in memory if enough is free, else on disk. */
async function dataFolder(): Promise<string> {
  const free = await statfs(MEMORY_DISK).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0, // no such file system
  )
  return free >= MEMORY_BYTES_MIN ? MEMORY_DISK : tmpdir()
}

/** Starts a process that deletes a folder on request, or when this process exits for any reason. */
function removeOnExit(folder: string): { removeNow: () => Promise<void> } {
  // Nodes that are being killed may still write, so the process retries for 10 s.
  const script = 'cat; for i in $(seq 100); do rm -rf -- "$1" && exit 0; sleep 0.1; done; exit 1'
  const child: ChildProcess = spawn('sh', ['-c', script, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const exited = once(child, 'exit')
  exited.catch(() => undefined) // awaited in `removeNow`
  return {
    async removeNow() {
      child.stdin?.end()
      const [code] = (await exited) as [number | null]
      if (code !== 0) throw new Error('cannot delete the data of Cassandra')
    },
  }
}
