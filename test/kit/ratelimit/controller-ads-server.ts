// The controller's xDS server in the process of the test, and a client of it on grpc-js that
// accepts, rejects or ignores what it receives.
import * as grpc from '@grpc/grpc-js'
import {
  type AdsReplica,
  type AdsServer,
  type AdsServerOptions,
  openAdsServer,
} from '../../../src/grpc/ads/ads-server.ts'
import {
  ADS_METHOD,
  type DiscoveryRequest,
  readDiscoveryResponse,
  writeDiscoveryRequest,
} from '../../../src/protobuf/discovery.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { waitFor } from '../wait-for.ts'
import { CONFIG_TYPE_URL, configBytes, type ConfigMessage } from './xds-messages.ts'

/** A running server. */
export interface ControllerAdsServer extends Omit<AdsServer, 'publish'> {
  /** Log lines so far, in the order of the log. */
  readonly log: readonly string[]
  /** The hits that limiters have reported, by rule. */
  readonly audited: ReadonlyMap<string, number>
  /** Publishes configs as a version. */
  publish(version: string, ...configs: readonly ConfigMessage[]): void
  /** Publishes any resources. */
  publishBytes(version: string, ...resources: readonly Uint8Array[]): void
  /** Waits for the limiters with these active versions, in any order. */
  active(...versions: readonly string[]): Promise<readonly AdsReplica[]>
  /** The number of faults of clients by reason. */
  faults(): Promise<Readonly<Record<string, number>>>
}

/** Starts a server with short deadlines. */
export async function startControllerAdsServer(
  options: Partial<Omit<AdsServerOptions, 'onAudit' | 'log' | 'metrics'>> = {},
): Promise<ControllerAdsServer> {
  const log: string[] = []
  const audited = new Map<string, number>()
  const metrics = createMetrics()
  const write = (...[, sentence]: readonly [object, string]) => {
    log.push(sentence)
  }
  const server = await openAdsServer({
    port: 0,
    onChange: () => undefined,
    onLeave: () => undefined,
    onAudit: (counts) => {
      for (const { rule, hits } of counts) audited.set(rule, (audited.get(rule) ?? 0) + hits)
    },
    log: { warn: write, error: write } as unknown as AdsServerOptions['log'],
    metrics,
    ...options,
  })
  const publishBytes: ControllerAdsServer['publishBytes'] = (version, ...resources) => {
    server.publish({ version, resources })
  }
  return {
    ...server,
    log,
    audited,
    publishBytes,
    publish: (version, ...configs) => {
      publishBytes(version, ...configs.map(configBytes))
    },
    async active(...versions) {
      const rendered = (of: readonly string[]) => JSON.stringify(of.toSorted())
      const now = () => rendered(server.replicas().map(({ active }) => active))
      await waitFor(`the active versions ${rendered(versions)}`, () => now() === rendered(versions))
      return server.replicas()
    },
    async faults() {
      const { values } = await metrics.adsFaults.get()
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels.reason), value]))
    },
  }
}

/** A client, with what it has received so far. */
export interface AdsTestClient {
  readonly versions: readonly string[]
  /** Details of the status that closed its call, if any. */
  readonly closed: readonly string[]
  send(request: Partial<DiscoveryRequest>): void
  /** Accepts the last response, or the one with a nonce. */
  accept(nonce?: string): void
  /** Rejects the last response. */
  reject(error: string): void
  close(): void
}

/** Options of a client. */
interface ClientOptions {
  readonly credentials?: grpc.ChannelCredentials
  readonly method?: string
  /** Whether it subscribes, and accepts each version. @default true */
  readonly accepts?: boolean
}

const first = {
  node: undefined,
  version: '',
  typeUrl: CONFIG_TYPE_URL,
  nonce: '',
  error: undefined,
}

/** Opens a client at a port of 127.0.0.1. */
export function openAdsTestClient(port: number, options: ClientOptions = {}): AdsTestClient {
  const { credentials = grpc.credentials.createInsecure(), accepts = true } = options
  const client = new grpc.Client(`127.0.0.1:${String(port)}`, credentials, {
    'grpc.ssl_target_name_override': 'xds.example',
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
  })
  const asBytes = (bytes: Buffer) => bytes
  const call = client.makeBidiStreamRequest(options.method ?? ADS_METHOD, asBytes, asBytes)
  const [versions, closed]: [string[], string[]] = [[], []]
  let last = { version: '', nonce: '' }
  const send: AdsTestClient['send'] = (request) => {
    call.write(writeDiscoveryRequest({ ...first, ...request }))
  }
  const accept: AdsTestClient['accept'] = (nonce = last.nonce) => {
    send({ version: last.version, nonce })
  }
  call.on('data', (message: Buffer) => {
    last = readDiscoveryResponse(message)
    versions.push(last.version)
    if (accepts) accept()
  })
  call.on('error', () => undefined) // 'status' follows
  call.on('status', ({ details }: grpc.StatusObject) => closed.push(details))
  if (accepts) send({})
  return {
    versions,
    closed,
    send,
    accept,
    reject(error) {
      send({ nonce: last.nonce, error })
    },
    close() {
      call.cancel()
      client.close()
    },
  }
}
