// The dependency `cassandra`: clusters of one or three real nodes for tests, on their own
// addresses, with data in memory. No process and no data is left, even if the test process is
// killed.
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

/** Where memory looks like a disk. */
const MEMORY_DISK = '/dev/shm'
const MEMORY_BYTES_MIN = 2 * 1024 ** 3
/** Last parts of the addresses of nodes, and of the proxies before them. */
const NODE_PARTS = [11, 12, 13]
const PROXY_PARTS = [21, 22, 23]
/** Compiled in full and with room, as in production; a test's node is soon there instead. */
const PRODUCTION_FLAGS =
  '-Xms2g -Xmx2g -XX:-UseSerialGC -XX:+UseG1GC -XX:TieredStopAtLevel=4'.split(' ')

/** One node of a cluster. */
interface CassandraNode {
  /** Its address for clients: that of its proxy, if it has one. */
  readonly address: string
  readonly pid: () => number
  /** Where it writes its log. */
  readonly logPath: string
  /** Kills it (SIGKILL), like a crash; resolves when the process has exited. */
  kill(): Promise<void>
  /** Suspends it (SIGSTOP), like a machine that hangs. */
  pause(): void
  resume(): void
  /** Stops it if it runs, and starts it on its data; resolves when it serves CQL. */
  restart(): Promise<void>
}

/** A cluster that is ready: every node serves CQL and has discovered the others. */
export interface CassandraCluster {
  /** Addresses for clients, without the port. */
  readonly contactPoints: readonly string[]
  readonly port: number
  readonly localDc: 'datacenter1'
  readonly nodes: readonly CassandraNode[]
  /** The node at this place, from 0. */
  node(at: number): CassandraNode
  /** The proxy before the node at this place. Throws if the cluster has no proxies. */
  proxy(at: number): FaultProxy
  /** Ends every node and deletes its data. */
  stop(): Promise<void>
}

/** How to start one. */
export interface CassandraOptions {
  readonly nodes: 1 | 3
  /** Whether clients are to see each node through a proxy that plays a bad network. */
  readonly proxied?: boolean
  /**
   * What of cassandra.yaml is to be otherwise, such as `{ paxos_variant: 'v1' }`. Where it asks for
   * passwords, the superuser is `cassandra` with the password `cassandra`.
   */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Further flags of the JVM. */
  readonly jvmFlags?: readonly string[]
  /** Whether its JVM is to be as in production, with 2 GB a node, for what is measured. */
  readonly isProductionJvm?: boolean
}

/** Starts a cluster, fetching what it needs first. Throws the reason where that fails. */
export async function startCassandra(options: CassandraOptions): Promise<CassandraCluster> {
  if (process.platform !== 'linux') throw new Error('Cassandra can be started on Linux alone')
  const java = await findJava()
  const classPath = await findCassandraJars()
  const archiveFlags = await findArchive(java, classPath)
  const isProxied = options.proxied === true
  const nodeParts = NODE_PARTS.slice(0, options.nodes)
  const proxyParts = isProxied ? PROXY_PARTS.slice(0, options.nodes) : []
  const block = await reserveAddresses([...nodeParts, ...proxyParts])
  const home = await mkdtemp(join(await diskOfMemory(), 'curtail-cassandra-'))
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
    if (one === undefined) throw new Error(`there is no ${what} ${String(place)}`)
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

/** Where data may go: memory where there is enough, else the folder for what is temporary. */
async function diskOfMemory(): Promise<string> {
  const free = await statfs(MEMORY_DISK).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0, // there is none
  )
  return free >= MEMORY_BYTES_MIN ? MEMORY_DISK : tmpdir()
}

/** A process that deletes a folder on request, or when our process exits for any reason. */
function removeOnExit(folder: string): { removeNow: () => Promise<void> } {
  // Nodes that die at the same moment may still write: it tries for a while.
  const script = 'cat; for i in $(seq 100); do rm -rf -- "$1" && exit 0; sleep 0.1; done; exit 1'
  const child: ChildProcess = spawn('sh', ['-c', script, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const ended = once(child, 'exit')
  ended.catch(() => undefined) // `removeNow` throws it
  return {
    async removeNow() {
      child.stdin?.end()
      const [code] = (await ended) as [number | null]
      if (code !== 0) throw new Error('the data of Cassandra could not be deleted')
    },
  }
}
