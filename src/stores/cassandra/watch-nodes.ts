// Which nodes of the local data center are up, and whether a majority of replicas responds: the
// state of the store that `/readyz` reports. Logs and counts each node that goes down or comes up.
import type { Client, Host } from 'cassandra-driver'
import type { Log } from '../../telemetry/log.ts'
import { type CassandraMetrics, showPool } from './driver-metrics.ts'
import { createMajorityWatch, type MajorityWatch } from './majority.ts'

/** `no-majority`: some node is up, but statements that need a majority of replicas fail. */
export type StoreState = 'up' | 'no-majority' | 'down'

/** What the watch works with. */
interface NodeWatchOptions {
  readonly client: Client
  readonly localDc: string
  readonly metrics: CassandraMetrics
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Sends probes to some nodes; `undefined`: a session outside of our keyspace has none. */
  readonly probe: ((majority: MajorityWatch) => void) | undefined
  /** Called once no majority responds: what waits for one need not wait longer. */
  readonly onMissing: () => void
  readonly onState: ((state: StoreState) => void) | undefined
}

/** What is known of the nodes. */
export interface NodeWatch {
  readonly majority: MajorityWatch
  /** `undefined` before the first connection. */
  state(): StoreState | undefined
  isConnected(): boolean
  /** The client is connected. */
  begin(): void
  end(): Promise<void>
}

const LOOK_EVERY_MS = 1000

/** Watches the nodes that the driver knows. */
export function watchNodes(options: NodeWatchOptions): NodeWatch {
  const { client, localDc, metrics, log, onState } = options
  let isConnected = false
  let wasAnyUp = false
  let state: StoreState | undefined
  let timer: NodeJS.Timeout | undefined
  const nodes = createNodeLog(options)
  const majority: MajorityWatch = createMajorityWatch({
    probe: () => {
      if (options.probe === undefined) majority.answered(performance.now())
      else options.probe(majority)
    },
    onChange: (isPresent) => {
      if (!isPresent) options.onMissing()
      show()
    },
  })
  const hostsNow = () => client.hosts.values().filter((host) => host.datacenter === localDc)
  const show = () => {
    const isAnyUp = isConnected && hostsNow().some((host) => host.isUp())
    if (!isAnyUp || !wasAnyUp) majority.forget() // what probes told while all were down is void
    wasAnyUp = isAnyUp
    const isPresent = majority.isPresent()
    // A node has just come up: what was reported holds until a probe has told more.
    if (isAnyUp && isPresent === undefined) return
    const next = !isAnyUp ? 'down' : isPresent === true ? 'up' : 'no-majority'
    metrics.cassandraMajority.set(next === 'up' ? 1 : 0)
    if (next === state || (state === undefined && next === 'down')) return
    state = next
    if (next === 'up') log.info('Cassandra available')
    else if (next === 'down') log.warn('Cassandra unavailable: no node is up')
    else log.warn('Cassandra unavailable: no majority of replicas responds, probing')
    onState?.(next)
  }
  const look = () => {
    if (!isConnected) return
    if (nodes.note(hostsNow())) majority.doubt()
    show()
  }
  // A node that is found again is first removed, then added, and gets its data center after that.
  const lookSoon = () => setImmediate(look)
  for (const event of ['hostUp', 'hostDown', 'hostAdd', 'hostRemove']) client.on(event, lookSoon)
  return {
    majority,
    state: () => state,
    isConnected: () => isConnected,
    begin() {
      isConnected = true
      look()
      timer = setInterval(() => {
        look() // not every change is an event
        majority.look()
        showPool(client, metrics)
      }, LOOK_EVERY_MS)
      timer.unref()
      showPool(client, metrics)
    },
    async end() {
      isConnected = false
      state = 'down'
      clearInterval(timer)
      client.removeAllListeners()
      await majority.stop()
    },
  }
}

/** Logs and counts changes between one look at the nodes and the next. */
function createNodeLog({ metrics, log }: Pick<NodeWatchOptions, 'metrics' | 'log'>) {
  let upBefore: ReadonlySet<string> | undefined
  return {
    /** Whether any node went down or came up. */
    note(hosts: readonly Host[]): boolean {
      const upNow = new Set(hosts.filter((host) => host.isUp()).map(({ address }) => address))
      const before = upBefore ?? new Set<string>()
      const isFirst = upBefore === undefined
      upBefore = upNow
      const counts = { up: upNow.size, known: hosts.length }
      const came = [...upNow].filter((address) => !before.has(address))
      const went = [...before].filter((address) => !upNow.has(address))
      metrics.cassandraNodeChanges.labels('up').inc(came.length)
      metrics.cassandraNodeChanges.labels('down').inc(went.length)
      for (const address of went) log.warn({ address, ...counts }, 'Cassandra node down')
      if (isFirst) log.info({ addresses: [...upNow], ...counts }, 'connected to Cassandra')
      else for (const address of came) log.info({ address, ...counts }, 'Cassandra node up')
      return came.length + went.length > 0
    },
  }
}
