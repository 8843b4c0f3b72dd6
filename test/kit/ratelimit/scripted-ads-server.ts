// An xDS server (aggregated discovery, state of the world) on grpc-js that sends what the test
// scripts, and records the requests. As in go-control-plane, a new stream gets the current version.
import * as grpc from '@grpc/grpc-js'
import { waitFor } from '../wait-for.ts'
import {
  CONFIG_TYPE_URL,
  configBytes,
  type ConfigMessage,
  type DiscoveryRequestMessage,
  parseRequest,
  responseBytes,
} from './xds-messages.ts'

/** A request, the number of its stream from 1, and the headers of that stream. */
interface AdsRequest extends DiscoveryRequestMessage {
  readonly stream: number
  readonly headers: Readonly<Record<string, string | Buffer>>
  /** The serial number of the client's certificate. */
  readonly certificate: string | undefined
  readonly atMs: number
}

/** A version to send: its configs, or any resources. */
interface ScriptedVersion {
  readonly version: string
  readonly configs?: readonly ConfigMessage[]
  readonly resources?: readonly { readonly typeUrl: string; readonly value: Buffer }[]
  readonly typeUrl?: string
}

/** A running server. */
export interface AdsServer {
  readonly port: number
  readonly requests: readonly AdsRequest[]
  /** Sets the current version and sends it on every open stream; returns its nonce. */
  publish(version: ScriptedVersion): string
  /** Sends bytes as a message on every open stream. */
  sendBytes(bytes: Buffer): void
  /** The request that accepts or rejects the response with a nonce. */
  requestFor(nonce: string): Promise<AdsRequest>
  /** Ends all streams with a status. */
  endStreams(code: grpc.status): void
  /** Number of open streams. */
  streams(): number
  close(): void
}

/** Options of a server. */
export interface AdsServerOptions {
  /** @default a free port */
  readonly port?: number
  /** @default 127.0.0.1 */
  readonly host?: string
  readonly credentials?: grpc.ServerCredentials
  /** As in go-control-plane, a rejected version is re-sent immediately. @default false */
  readonly resendsRejected?: boolean
}

type Stream = grpc.ServerDuplexStream<Buffer, Buffer>

const PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'
const asBytes = (bytes: Buffer) => bytes
const definition = {
  path: PATH,
  requestStream: true,
  responseStream: true,
  requestSerialize: asBytes,
  requestDeserialize: asBytes,
  responseSerialize: asBytes,
  responseDeserialize: asBytes,
} as const

/** Starts a server. */
export async function startAdsServer(options: AdsServerOptions = {}): Promise<AdsServer> {
  const requests: AdsRequest[] = []
  const open = new Set<Stream>()
  let [streams, nonces] = [0, 0]
  let current: ScriptedVersion | undefined
  const send = (stream: Stream, { version, ...given }: ScriptedVersion): string => {
    nonces += 1
    const nonce = `nonce-${String(nonces)}`
    const { typeUrl = CONFIG_TYPE_URL } = given
    const resources = resourcesOf(given)
    stream.write(responseBytes({ versionInfo: version, nonce, typeUrl, resources }))
    return nonce
  }
  const serve = (stream: Stream) => {
    streams += 1
    const number = streams
    let isFirst = true
    open.add(stream)
    stream.on('data', (bytes: Buffer) => {
      const headers = stream.metadata.getMap()
      const request = parseRequest(bytes)
      const certificate = stream.getAuthContext().sslPeerCertificate?.serialNumber
      requests.push({ ...request, stream: number, headers, certificate, atMs: performance.now() })
      const isNewest = request.responseNonce === `nonce-${String(nonces)}`
      const mayResend = isFirst || (options.resendsRejected === true && isNewest)
      if (mayResend && current !== undefined && request.versionInfo !== current.version) {
        send(stream, current)
      }
      isFirst = false
    })
    const close = () => open.delete(stream)
    stream.on('end', () => {
      close()
      stream.end()
    })
    stream.on('error', close)
    stream.on('cancelled', close)
  }
  const server = new grpc.Server({ 'grpc.max_send_message_length': -1 })
  server.addService({ StreamAggregatedResources: definition }, { StreamAggregatedResources: serve })
  const port = await bind(server, options)
  return {
    port,
    requests,
    publish(version) {
      current = version
      let nonce = ''
      for (const stream of open) nonce = send(stream, version)
      return nonce
    },
    sendBytes(bytes) {
      for (const stream of open) stream.write(bytes)
    },
    async requestFor(nonce) {
      const find = () => requests.find(({ responseNonce }) => responseNonce === nonce)
      await waitFor(`the request for ${nonce}`, () => find() !== undefined)
      const found = find()
      if (found === undefined) throw new Error('the request was removed')
      return found
    },
    endStreams(code) {
      for (const stream of open) stream.emit('error', { code, details: 'scripted' })
      open.clear()
    },
    streams: () => open.size,
    close() {
      server.forceShutdown()
    },
  }
}

function bind(server: grpc.Server, options: AdsServerOptions): Promise<number> {
  const address = `${options.host ?? '127.0.0.1'}:${String(options.port ?? 0)}`
  const credentials = options.credentials ?? grpc.ServerCredentials.createInsecure()
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, bound) => {
      if (error === null) resolve(bound)
      else reject(error)
    })
  })
}

function resourcesOf({ resources, configs = [] }: Omit<ScriptedVersion, 'version'>) {
  const typed = (config: ConfigMessage) => ({
    typeUrl: CONFIG_TYPE_URL,
    value: configBytes(config),
  })
  return resources ?? configs.map(typed)
}
