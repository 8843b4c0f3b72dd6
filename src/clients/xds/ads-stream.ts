// One stream of aggregated discovery: opens a connection to the xDS server, passes its messages on,
// and reports in one sentence why it failed.
import { AsyncLocalStorage } from 'node:async_hooks'
import { X509Certificate } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type * as GrpcJs from '@grpc/grpc-js'
import type { ChannelCredentials, Client, ServiceError, StatusObject } from '@grpc/grpc-js'
import type { TlsMaterial } from '../../process/tls-files.ts'
import { ADS_METHOD } from '../../protobuf/discovery.ts'
import { WireError } from '../../protobuf/wire-reader.ts'
import { isUnreachable } from '../../resilience/start-period.ts'
import type { FailureReason } from './retry-delay.ts'
import type { XdsConfig } from './settings.ts'

/** Why a stream was closed or could not be opened. */
export interface StreamFailure {
  readonly reason: FailureReason
  /** One sentence with the setting to check. */
  readonly message: string
  /** Whether no server was reached: it may still be starting. */
  readonly isUnreachable?: boolean
}

/** What to open, and what to call. */
export interface StreamOptions {
  readonly config: XdsConfig
  /** `undefined`: plaintext. */
  readonly tls: TlsMaterial | undefined
  /** The timeout of connecting. */
  readonly connectMsMax: number
  /** Aborts the stream. */
  readonly signal: AbortSignal
  /** The last request of a client that stops; `undefined`: the server would reject it. */
  readonly lastRequest: () => Buffer | undefined
  /** Called once the server is connected. */
  readonly onOpen: (send: (request: Buffer) => void) => void
  /** Called with each message; a WireError that it throws closes the stream. */
  readonly onMessage: (message: Buffer) => void
}

type Grpc = Pick<
  typeof GrpcJs,
  'Client' | 'connectivityState' | 'credentials' | 'Metadata' | 'status'
>
type AdsCall = ReturnType<Client['makeBidiStreamRequest']>

/** The reason with which a client that stops aborts its stream. */
export const STOPPING = 'stopping'

/** By default, servers that use gRPC for Go close connections on which pings are more frequent. */
const KEEPALIVE_MS = 310_000
/** Idle time before TCP probes, which detect a vanished host. Servers do not count these probes. */
const TCP_KEEPALIVE_MS = 10_000
const KEEPALIVE_TIMEOUT_MS = 20_000
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** Maximum number of requests that the server has not read yet. */
const UNREAD_REQUESTS_MAX = 16
const DETAILS_LENGTH_MAX = 500
/** Matches the cause if the server closes a connection before it sends its settings. */
const CLOSED_BY_SERVER = /\balert\b|ECONNRESET|EPIPE|Failed to connect/
/** Matches further messages of grpc-js if it reaches no server. */
const UNREACHABLE = /^no connection within|Name resolution failed/
/** Time within which the server completes the stream after the last request. */
const COMPLETE_MS_MAX = 500

interface Attempt {
  readonly sockets: Set<Socket>
  isOver: boolean
}

/**
 * The attempt that creates a socket. grpc-js 1.14 waits for the server's settings before it closes
 * a connection: each attempt to connect to a server that hangs would leave a connection open. It
 * also reconnects once after its channel was closed, and would keep that connection open.
 */
const attempts = new AsyncLocalStorage<Attempt>()
subscribe('net.client.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  const attempt = attempts.getStore()
  // This event precedes `connect`, which reopens a socket that is already destroyed.
  if (attempt?.isOver === true) process.nextTick(() => socket.destroy())
  else attempt?.sockets.add(socket.setKeepAlive(true, TCP_KEEPALIVE_MS))
})

/** Runs one stream until it fails; resolves to `undefined` if `signal` aborts it. Never rejects. */
export async function runAdsStream(options: StreamOptions): Promise<StreamFailure | undefined> {
  const sockets = new Set<Socket>()
  const attempt = { sockets, isOver: false }
  const onOpen: StreamOptions['onOpen'] = (send) => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy() // a parallel attempt
    sockets.clear()
    options.onOpen(send)
  }
  try {
    return await attempts.run(attempt, () => runStream({ ...options, onOpen }))
  } finally {
    attempt.isOver = true
    for (const socket of sockets) socket.destroy()
  }
}

async function runStream(options: StreamOptions): Promise<StreamFailure | undefined> {
  const { config, signal } = options
  let client: Client | undefined
  let call: AdsCall | undefined
  try {
    // Only a process that uses xDS loads grpc-js. In a bundle, `default` has the module's names.
    const { default: grpc } = await import('@grpc/grpc-js')
    if (signal.aborted) return undefined
    const credentials = credentialsOf(grpc, options.tls)
    client = new grpc.Client(config.CONFIG_GRPC_XDS_SERVER_URL, credentials, channelOptions(config))
    call = openCall(grpc, client, config)
    return await watchCall({ grpc, client, call, options })
  } catch (error) {
    return connectFailure(options, (error as Error).message)
  } finally {
    call?.cancel()
    client?.close()
  }
}

function credentialsOf(grpc: Grpc, tls: TlsMaterial | undefined): ChannelCredentials {
  if (tls === undefined) return grpc.credentials.createInsecure()
  return grpc.credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null)
}

function channelOptions(config: XdsConfig) {
  const name = config.CONFIG_GRPC_XDS_SERVER_TLS_SAN
  return {
    'grpc.max_receive_message_length': config.XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES || MESSAGE_BYTES_MAX,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.enable_retries': 0,
    'grpc.service_config_disable_resolution': 1,
    'grpc.use_local_subchannel_pool': 1,
    ...(name !== '' && { 'grpc.ssl_target_name_override': name, 'grpc.default_authority': name }),
  }
}

function openCall(grpc: Grpc, client: Client, config: XdsConfig): AdsCall {
  const metadata = new grpc.Metadata()
  for (const [name, value] of config.CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS) {
    metadata.set(name, value)
  }
  const asBytes = (bytes: Buffer) => bytes
  const call = client.makeBidiStreamRequest(ADS_METHOD, asBytes, asBytes, metadata)
  return call as AdsCall
}

/** Resolves when the call is closed. */
function watchCall(given: {
  readonly grpc: Grpc
  readonly client: Client
  readonly call: AdsCall
  readonly options: StreamOptions
}): Promise<StreamFailure | undefined> {
  const { grpc, client, call, options } = given
  const { connectMsMax, signal } = options
  let isOpen = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  return new Promise((resolve) => {
    const stop = () => {
      const last = signal.reason === STOPPING ? options.lastRequest() : undefined
      if (last === undefined) {
        close()
        return
      }
      isClosed = true
      call.end(last)
      timer = setTimeout(close, COMPLETE_MS_MAX)
    }
    signal.addEventListener('abort', stop, { once: true })
    const close = (failure?: StreamFailure) => {
      isClosed = true
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(signal.aborted ? undefined : failure)
    }
    const send = (request: Buffer) => {
      if (isClosed) return
      if (call.writableLength < UNREAD_REQUESTS_MAX) call.write(request)
      else close({ reason: 'stream', message: 'the xDS server does not read requests' })
    }
    const channel = client.getChannel()
    const deadline = Date.now() + connectMsMax
    // The call starts to connect. `client.waitForReady` would connect even after its channel was
    // closed: that channel would reconnect for ever.
    const watch = (error?: Error) => {
      if (isClosed) return
      if (error !== undefined) {
        close(connectFailure(options, `no connection within ${connectMsMax} ms`))
        return
      }
      const state = channel.getConnectivityState(false)
      isOpen = state === grpc.connectivityState.READY
      if (isOpen) options.onOpen(send)
      else channel.watchConnectivityState(state, deadline, watch)
    }
    setImmediate(watch)
    call.on('data', (message: Buffer) => {
      if (isClosed) return
      try {
        options.onMessage(message)
      } catch (error) {
        if (!(error instanceof WireError)) throw error
        const sentence = `the xDS server sent a malformed message: ${error.message}`
        close({ reason: 'protocol', message: sentence })
      }
    })
    call.on('error', (error: ServiceError) => {
      close(failureOf(grpc, error, { options, isOpen }))
    })
    call.on('status', ({ code }: StatusObject) => {
      if (code !== grpc.status.OK) return
      close({ reason: 'closed', message: 'the xDS server closed the stream' })
    })
  })
}

function failureOf(
  { status }: Grpc,
  { code, details }: ServiceError,
  { options, isOpen }: { readonly options: StreamOptions; readonly isOpen: boolean },
): StreamFailure {
  const cause = `${status[code]}: ${details.slice(0, DETAILS_LENGTH_MAX).replaceAll(/\s+/g, ' ')}`
  if (code === status.RESOURCE_EXHAUSTED && details.includes('larger than max')) {
    const advice = 'increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES'
    return { reason: 'message_size', message: `a version is too large (${details}): ${advice}` }
  }
  if (code === status.UNIMPLEMENTED) {
    const message = `the server does not serve aggregated discovery (${cause})`
    return { reason: 'protocol', message: `${message}: check CONFIG_GRPC_XDS_SERVER_URL` }
  }
  if (!isOpen) return connectFailure(options, cause)
  return { reason: 'stream', message: `the stream of the xDS server failed (${cause})` }
}

function connectFailure(
  { config, tls }: Pick<StreamOptions, 'config' | 'tls'>,
  cause: string,
): StreamFailure {
  const { CONFIG_GRPC_XDS_SERVER_URL: url, CONFIG_GRPC_XDS_SERVER_USE_TLS: usesTls } = config
  const tlsNames = usesTls ? ', CONFIG_GRPC_XDS_SERVER_TLS_* and CONFIG_GRPC_XDS_CLIENT_TLS_*' : ''
  const names = `CONFIG_GRPC_XDS_SERVER_URL, CONFIG_GRPC_XDS_SERVER_USE_TLS${tlsNames}`
  const problem = `cannot connect to the xDS server ${url} (${cause})${certificateHint(tls, cause)}`
  return {
    reason: 'connect',
    message: `${problem}: check ${names}`,
    isUnreachable: isUnreachable({ message: cause }) || UNREACHABLE.test(cause),
  }
}

/**
 * A possible problem of the client certificate. In TLS 1.3, the server verifies it after the
 * client's handshake: the client receives an alert or a close, often without a cause.
 */
function certificateHint(tls: TlsMaterial | undefined, cause: string): string {
  if (tls === undefined || !CLOSED_BY_SERVER.test(cause)) return ''
  const setting = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT'
  if (tls.cert === undefined) return `; the server may require a client certificate (${setting})`
  const { validToDate } = new X509Certificate(tls.cert)
  return validToDate.getTime() < Date.now()
    ? `; the client certificate (${setting}) expired at ${validToDate.toISOString()}`
    : `; the server may reject the client certificate (${setting})`
}
