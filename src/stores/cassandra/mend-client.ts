// Mends of the driver's client (4.10), which goes on connecting for ever, also after its end, where
// its cluster was lost whole: to nodes that it forgot, and to those it finds while it is shut down.
import type { Client, Host } from 'cassandra-driver'
import type { Log } from '../../process/log.ts'
import { mendRefresh, type RefreshingControl } from './mend-refresh.ts'

/** What mending needs. */
export interface MendClientDeps {
  readonly log: Pick<Log, 'debug'>
  /** Whether the end of the client has begun: it looks no more for nodes then. */
  readonly isClosed: () => boolean
}

/** The end of a mended client. */
export interface MendedClient {
  /** Instead of the client's own: nothing connects any more once what is under way has ended. */
  shutdown(): Promise<void>
}

interface Inner {
  readonly controlConnection?: RefreshingControl & {
    readonly connection?: { close?: () => unknown } | null
  }
}

type EndingHost = Host & { readonly shutdown?: (waitForPending: boolean) => Promise<void> }

/** Mends a client; to be called before it connects. */
export function mendClient(client: Client & Inner, deps: MendClientDeps): MendedClient {
  const { log, isClosed } = deps
  let isShutDown = false
  const onLate = () => {
    if (isShutDown) void endFound(client, log)
  }
  const { controlConnection } = client
  if (controlConnection !== undefined) mendRefresh(controlConnection, { log, isClosed, onLate })
  client.on('hostRemove', endHost)
  return {
    shutdown() {
      isShutDown = true
      return client.shutdown()
    },
  }
}

/** Ends the connection by which the driver learnt that it may not stay: it forgets it. */
export function endLeftover(client: Client & Inner): void {
  client.controlConnection?.connection?.close?.()
}

/**
 * Ends a node's connections when the driver takes it from its list. Where it finds a node again
 * after all were lost it puts a new one in its place and forgets the old one.
 */
function endHost(host: EndingHost): void {
  void host.shutdown?.(true)
}

/** Ends what a search for the cluster has found that went on while the client was shut down. */
async function endFound(client: Client & Inner, log: Pick<Log, 'debug'>): Promise<void> {
  endLeftover(client)
  const hosts: readonly EndingHost[] = client.hosts.values()
  await Promise.all(hosts.map(async (host) => host.shutdown?.(false))).catch((err: unknown) => {
    log.debug({ err }, 'a node that was found late was not let go in order')
  })
}
