// Tracks which nodes of the local data center are up and whether a majority of replicas responds:
// the store's state on `/readyz`. Logs and counts each node that goes down or comes up.
import type { Client, Host } from 'cassandra-driver'
import type { Log } from '../../telemetry/log.ts'
import { type CassandraMetrics, exportConnectionState } from './driver-metrics.ts'
import { createMajorityWatch, type MajorityWatch } from './majority.ts'

/** `no-majority`: a node is up, but statements that need a majority of replicas fail. */
export type StoreState = 'up' | 'no-majority' | 'down'

/** Options of the watch. */
interface NodeWatchOptions {
  readonly client: Client
  readonly localDc: string
  readonly metrics: CassandraMetrics
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Sends probes to some nodes; `undefined` for a session outside the keyspace. */
  readonly probe: ((majority: MajorityWatch) => void) | undefined
  /** Called when no majority responds: statements that need one can fail immediately. */
  readonly onMajorityLost: () => void
  readonly onState: ((state: StoreState) => void) | undefined
}

/** The observed state of the nodes. */
export interface NodeWatch {
  readonly majority: MajorityWatch
  /** `undefined` before the first connection. */
  state(): StoreState | undefined
  isConnected(): boolean
  /** Called when the client is connected. */
  start(): void
  stop(): Promise<void>
}

const POLL_EVERY_MS = 1000

/** Watches the driver's list of nodes. */
export function watchNodes(options: NodeWatchOptions): NodeWatch {
  const { client, localDc, metrics, log, onState } = options
  let isConnected = false
  let wasAnyUp = false
  let state: StoreState | undefined
  let timer: NodeJS.Timeout | undefined
  const nodes = createNodeLog(options)
  const majority: MajorityWatch = createMajorityWatch({
    probe: () => {
      if (options.probe === undefined) majority.noteSuccess(performance.now())
      else options.probe(majority)
    },
    onChange: (isPresent) => {
      if (!isPresent) options.onMajorityLost()
      update()
    },
  })
  const hostsNow = () => client.hosts.values().filter((host) => host.datacenter === localDc)
  const update = () => {
    const isAnyUp = isConnected && hostsNow().some((host) => host.isUp())
    if (!isAnyUp || !wasAnyUp) majority.reset() // probe results while all were down do not count
    wasAnyUp = isAnyUp
    const isPresent = majority.isPresent()
    // A node has just come up: the reported state stays until a probe completes.
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
  const poll = () => {
    if (!isConnected) return
    if (nodes.update(hostsNow())) majority.suspect()
    update()
  }
  // For a rediscovered node the driver emits removal and addition, and then sets its data center.
  const pollSoon = () => setImmediate(poll)
  for (const event of ['hostUp', 'hostDown', 'hostAdd', 'hostRemove']) client.on(event, pollSoon)
  return {
    majority,
    state: () => state,
    isConnected: () => isConnected,
    start() {
      isConnected = true
      poll()
      timer = setInterval(() => {
        poll() // the driver does not emit an event for every change
        majority.tick()
        exportConnectionState(client, metrics)
      }, POLL_EVERY_MS)
      timer.unref()
      exportConnectionState(client, metrics)
    },
    async stop() {
      isConnected = false
      state = 'down'
      clearInterval(timer)
      client.removeAllListeners()
      await majority.stop()
    },
  }
}

/** Logs and counts the changes between two polls of the nodes. */
function createNodeLog({ metrics, log }: Pick<NodeWatchOptions, 'metrics' | 'log'>) {
  let upBefore: ReadonlySet<string> | undefined
  return {
    /** Returns whether any node went down or came up. */
    update(hosts: readonly Host[]): boolean {
      const upNow = new Set(hosts.filter((host) => host.isUp()).map(({ address }) => address))
      const before = upBefore ?? new Set<string>()
      const isFirst = upBefore === undefined
      upBefore = upNow
      const counts = { up: upNow.size, nodes: hosts.length }
      const cameUp = [...upNow].filter((address) => !before.has(address))
      const wentDown = [...before].filter((address) => !upNow.has(address))
      metrics.cassandraNodeChanges.labels('up').inc(cameUp.length)
      metrics.cassandraNodeChanges.labels('down').inc(wentDown.length)
      for (const address of wentDown) log.warn({ address, ...counts }, 'Cassandra node down')
      if (isFirst) log.info({ addresses: [...upNow], ...counts }, 'connected to Cassandra')
      else for (const address of cameUp) log.info({ address, ...counts }, 'Cassandra node up')
      return cameUp.length + wentDown.length > 0
    },
  }
}
