// Workaround for cassandra-driver 4.10, which leaks connections that reconnect even after shutdown:
// those to removed nodes, those to nodes discovered during shutdown, and discarded control
// connections.
import type { Client, Host } from 'cassandra-driver'
import type { Log } from '../../telemetry/log.ts'
import { serializeRefreshes, type RefreshableControl } from './workaround-concurrent-refresh.ts'

/** Options of the workaround. */
export interface LeakPreventionOptions {
  readonly log: Pick<Log, 'debug'>
  /** Whether the client is shutting down: a node refresh is then not retried. */
  readonly isClosed: () => boolean
}

/** A client that stops connecting when shut down. */
export interface LeakFreeClient {
  /** Replaces the client's own: after it resolves the client opens no connection. */
  shutdown(): Promise<void>
}

/** The members of the driver's control connection that are patched. */
interface ControlConnection extends RefreshableControl {
  readonly connection: { close(): unknown } | null
  readonly hosts: { values(): readonly HostWithPool[] }
  /** Tries the contact points in turn; called a second time if its connection is unusable. */
  _borrowFirstConnection(contactPoints: unknown): Promise<void>
  shutdown(): void
}

type HostWithPool = Host & {
  readonly pool?: { on(event: 'close', listener: () => void): unknown }
  shutdown?(waitForPending: boolean): Promise<void>
}

/** Patches a client; must be called before it connects. */
export function preventConnectionLeaks(
  client: Client & { readonly controlConnection?: ControlConnection },
  { log, isClosed }: LeakPreventionOptions,
): LeakFreeClient {
  const { controlConnection: control } = client
  if (control === undefined) throw new Error('the driver has no control connection to patch')
  let isShutDown = false
  const shutDownHosts = async () => {
    control.connection?.close()
    const shutDown = async (host: HostWithPool) => {
      try {
        await host.shutdown?.(false)
      } catch (err) {
        log.debug({ err }, 'Cassandra node not disconnected cleanly')
      }
    }
    await Promise.all(control.hosts.values().map(shutDown))
  }
  const onRefreshAfterClose = () => {
    if (isShutDown) void shutDownHosts()
  }
  serializeRefreshes(control, { log, isClosed, onRefreshAfterClose })
  const borrow = control._borrowFirstConnection.bind(control)
  control._borrowFirstConnection = (contactPoints) => {
    control.connection?.close() // unusable; the driver would drop it without closing it
    return borrow(contactPoints)
  }
  client.on('hostRemove', shutDownHost)
  return {
    async shutdown() {
      isShutDown = true
      control.shutdown() // client.shutdown() skips this unless connected
      await client.shutdown()
      await shutDownHosts()
    },
  }
}

/**
 * Closes a node's connections when the driver removes it. When the driver rediscovers a node after
 * losing all, it creates a new host object and drops the old one, whose pool keeps reconnecting.
 */
function shutDownHost(host: HostWithPool): void {
  host.pool?.on('close', () => void host.shutdown?.(false))
  void host.shutdown?.(true)
}
