// The xDS server of the controller (aggregated discovery, state of the world): sends the published
// version of the rules to every limiter, and lists which version each one has acknowledged.
// Serves HTTP/2 with node:http2, because @grpc/grpc-js copies each message for each stream.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { RULES_TYPE_URL } from '../../limiter/rules/version-parser.ts'
import type { TlsFiles } from '../../process/tls-files.ts'
import { CONTROL_PLANE, writeDiscoveryResponse } from '../../protobuf/discovery.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { ProcessBounds, processMax } from '../http2/process-bounds.ts'
import type { AdsCallDeps, EncodedVersion } from './ads-call.ts'
import { AdsConnection } from './ads-connection.ts'
import { listen } from './listen.ts'
import { createFaultReport } from './report-faults.ts'

/** A compiled version. */
interface PublishedVersion {
  /** Not empty; equal versions have equal resources. */
  readonly version: string
  /** Serialized RateLimitConfigs. */
  readonly resources: readonly Uint8Array[]
}

/** One connected limiter. */
export interface AdsReplica {
  /** The node id of its first request; several limiters may have the same. */
  readonly node: string
  /** Its IP address. */
  readonly address: string
  /** The version that it accepted last on its stream; empty: none. */
  readonly active: string
  /** The last sent version, if the limiter rejected it. */
  readonly rejected: { readonly version: string; readonly message: string } | undefined
}

/** A running server. */
export interface AdsServer {
  readonly port: number
  /** Sends a version to every limiter, including those that connect later. */
  publish(version: PublishedVersion): void
  /** The limiters that have subscribed to rules, one for each connection. */
  replicas(): readonly AdsReplica[]
  close(): Promise<void>
}

/** Options of a server. */
export interface AdsServerOptions {
  /** 0: a free port. */
  readonly port: number
  /** The files are re-read on change; with `authorities`, limiters need a certificate. */
  readonly tls?: TlsFiles | undefined
  /** Called when a limiter has connected, disconnected, accepted or rejected a version. */
  readonly onChange: () => void
  /** Called with the active version of a limiter that stops, before `replicas` omits it. */
  readonly onLeave: AdsCallDeps['onLeave']
  readonly onAudit: AdsCallDeps['onAudit']
  readonly log: Pick<Log, 'warn' | 'error'>
  readonly metrics: Pick<Metrics, 'adsFaults'>
  /** A limiter that does not respond is disconnected within twice this time. @default 10,000 */
  readonly keepaliveMs?: number
}

const KEEPALIVE_MS = 10_000
/** Maximum number of open connections; one address may use at most half of them. */
const CONNECTIONS_MAX = 500
/** Maximum bytes of incomplete requests; one address may use at most half of them. */
const INCOMPLETE_BYTES_MAX = 8 * 1024 * 1024
/** Time that `close` waits for limiters that read slowly. */
const CLOSE_MS_MAX = 1000

/** Opens the server; limiters wait until the first version is published. Throws OperatorError. */
export async function openAdsServer(options: AdsServerOptions): Promise<AdsServer> {
  const { port, tls, onChange, onLeave, onAudit, log, keepaliveMs = KEEPALIVE_MS } = options
  const reportFor = createFaultReport(log, options.metrics)
  const max = { ...processMax, connections: CONNECTIONS_MAX, messages: INCOMPLETE_BYTES_MAX }
  const bounds = new ProcessBounds(() => undefined, max)
  const connections = new Map<AdsConnection, string>()
  let newest: EncodedVersion | undefined
  const onConnection = (socket: Socket) => {
    const address = addressOf(socket)
    const report = reportFor(address)
    const share = bounds.open(address, () => {
      report('abuse', 'the connection of a limiter is closed: it exceeds its share of the bounds')
      connection.destroy()
    })
    if (share === undefined) {
      report('connections', 'the connection of a limiter is rejected: too many are open')
      socket.on('error', () => undefined).destroy() // 'close' follows
      return
    }
    const connection = new AdsConnection(socket, {
      newest: () => newest,
      report,
      budget: share.budgets.messages,
      onChange,
      onLeave,
      onAudit,
      onClose: () => {
        share.close()
        connections.delete(connection)
      },
      keepaliveMs,
    })
    connections.set(connection, address)
  }
  const listener = await listen({
    port,
    tls,
    connectionsMax: 2 * CONNECTIONS_MAX,
    onConnection,
    onTlsFault: ({ message }, socket) => {
      reportFor(addressOf(socket))('tls', `the TLS handshake of a limiter failed: ${message}`)
    },
    onError: (err) => {
      const causes = 'a connection cannot be accepted, or changed TLS files cannot be used'
      log.error({ err }, `xDS server error: ${causes}; the last valid TLS files stay in use`)
    },
  })
  return {
    port: listener.port,
    publish(version) {
      if (version.version === newest?.version) return
      newest = encode(version)
      for (const connection of connections.keys()) connection.publish(newest)
    },
    replicas: () =>
      [...connections].flatMap(([{ subscribed: call }, address]) => {
        if (call === undefined) return []
        const { active, rejected } = call.state
        return [{ node: call.node, address, active, rejected }]
      }),
    async close() {
      const closed = listener.close(CLOSE_MS_MAX)
      for (const connection of connections.keys()) connection.close()
      await closed
    },
  }
}

const PREFIX_BYTES = 5

/** The gRPC message, with a nonce that a client knows only if it has read the message. */
function encode({ version, resources }: PublishedVersion): EncodedVersion {
  const nonce = randomBytes(12).toString('hex')
  const about = { version, nonce, typeUrl: RULES_TYPE_URL, controlPlane: CONTROL_PLANE }
  const message = writeDiscoveryResponse({ ...about, resources })
  const framed = Buffer.allocUnsafeSlow(PREFIX_BYTES + message.length)
  framed[0] = 0 // not compressed
  framed.writeUInt32BE(message.length, 1)
  message.copy(framed, PREFIX_BYTES)
  return { version, nonce, framed }
}

function addressOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:/, '')
}
