// Mends of the driver's client (4.10), which goes on connecting for ever, also after its end: to
// nodes that it forgot, to those it finds while it is shut down, and by connections it gave up.
import type { Client, Host } from 'cassandra-driver'
import type { Log } from '../../telemetry/log.ts'
import { mendRefresh, type RefreshingControl } from './mend-refresh.ts'

/** What mending needs. */
export interface MendClientDeps {
  readonly log: Pick<Log, 'debug'>
  /** Whether the end of the client has begun: a search for nodes is not repeated then. */
  readonly isClosed: () => boolean
}

/** The end of a mended client. */
export interface MendedClient {
  /** Instead of the client's own: nothing connects any more once what is under way has ended. */
  shutdown(): Promise<void>
}

/** The part of the driver's control connection that is mended. */
interface Control extends RefreshingControl {
  readonly connection: { close(): unknown } | null
  readonly hosts: { values(): readonly EndingHost[] }
  /** Tries one contact point after another; begun again where the one it got does not serve. */
  _borrowFirstConnection(contactPoints: unknown): Promise<void>
  shutdown(): void
}

type EndingHost = Host & {
  readonly pool?: { on(event: 'close', listener: () => void): unknown }
  shutdown?(waitForPending: boolean): Promise<void>
}

/** Mends a client; to be called before it connects. */
export function mendClient(
  client: Client & { readonly controlConnection?: Control },
  { log, isClosed }: MendClientDeps,
): MendedClient {
  const { controlConnection: control } = client
  if (control === undefined) throw new Error('the driver has no control connection to mend')
  let isShutDown = false
  const endFound = async () => {
    control.connection?.close()
    const ends = control.hosts.values().map(async (host) => host.shutdown?.(false))
    await Promise.all(ends).catch((err: unknown) => {
      log.debug({ err }, 'a node of Cassandra was not let go in order')
    })
  }
  const onLate = () => {
    if (isShutDown) void endFound()
  }
  mendRefresh(control, { log, isClosed, onLate })
  const borrow = control._borrowFirstConnection.bind(control)
  control._borrowFirstConnection = (contactPoints) => {
    control.connection?.close() // it did not serve, and would be forgotten
    return borrow(contactPoints)
  }
  client.on('hostRemove', endHost)
  return {
    async shutdown() {
      isShutDown = true
      control.shutdown() // the client does not where it is not connected
      await client.shutdown()
      await endFound()
    },
  }
}

/**
 * Ends a node's connections when the driver takes it from its list. Where it finds a node again
 * after all were lost it puts a new one in its place and forgets the old one, whose pool is ready
 * to connect again each time it has closed.
 */
function endHost(host: EndingHost): void {
  host.pool?.on('close', () => void host.shutdown?.(false))
  void host.shutdown?.(true)
}
