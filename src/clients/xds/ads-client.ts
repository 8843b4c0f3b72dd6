// A client of aggregated discovery (xDS, state of the world) for one type of resources: keeps a
// stream open, applies each version as a whole, and accepts or rejects it (ACK or NACK).
import { isDeepStrictEqual } from 'node:util'
import {
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
  watchTlsFiles,
} from '../../process/tls-files.ts'
import { version } from '../../process/version.ts'
import {
  type DiscoveryResponse,
  readDiscoveryResponse,
  writeDiscoveryRequest,
} from '../../protobuf/discovery.ts'
import { monotonicMs, pause } from '../../resilience/deadline.ts'
import { messageOf } from '../../resilience/message-of.ts'
import { createStartPeriod, SLOW_START_MS_MAX } from '../../resilience/start-period.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { runAdsStream, STOPPING, type StreamFailure } from './ads-stream.ts'
import { failureReasons, retryDelayMs } from './retry-delay.ts'
import { createReportSender, type Reports } from './send-reports.ts'
import {
  newSession,
  type Rejection,
  type Session,
  type SessionEvent,
  stepSession,
} from './session.ts'
import type { XdsConfig } from './settings.ts'

/** The dependencies of a client. */
export interface AdsClientDeps {
  readonly config: XdsConfig
  /** The type of the resources. */
  readonly typeUrl: string
  /**
   * Applies a version as a whole. Resolves to `undefined`, or to the reason why it is rejected.
   * Never called while a version is being applied; called immediately to retry, so `apply` must
   * delay retries. `superseded` aborts when a newer response arrives or the stream closes.
   */
  readonly apply: (
    response: DiscoveryResponse,
    superseded: AbortSignal,
  ) => Promise<Rejection | undefined>
  /** Reports to Curtail's controller; `undefined`: it is only informed when the client stops. */
  readonly reports?: Reports | undefined
  /** Called for each failed attempt and each stream that was closed, with the level of its log. */
  readonly onFailure: (level: 'info' | 'warn') => void
  readonly metrics: Pick<Metrics, 'xdsConnected' | 'xdsResponses' | 'xdsFailures'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  /** The timeout of connecting. @default 10,000 */
  readonly connectMsMax?: number
  /** @default Math.random */
  readonly random?: () => number
}

/** A running client. */
export interface AdsClient {
  /** Opens a new stream immediately. */
  reconnect(): void
  /** Stops, and informs Curtail's controller, so that it does not wait for a reconnect. */
  stop(): Promise<void>
}

type Arrived = DiscoveryResponse & { readonly stream: number }

const CONNECT_MS_MAX = 10_000

/** Starts the client; it connects in the background. */
export function openAdsClient(deps: AdsClientDeps): AdsClient {
  const { config, metrics, random = Math.random } = deps
  for (const reason of failureReasons) metrics.xdsFailures.inc({ reason }, 0)
  for (const result of ['ack', 'nack']) metrics.xdsResponses.inc({ result }, 0)
  // Curtail's controller serves the rules once Cassandra has the schema.
  const start = createStartPeriod(SLOW_START_MS_MAX)
  const report = ({ reason, message, ...failure }: StreamFailure, retryMs?: number) => {
    metrics.xdsFailures.inc({ reason })
    const level = start.levelOf(failure.isUnreachable === true)
    deps.log[level]({ reason, ...(retryMs !== undefined && { retryMs }) }, message)
    deps.onFailure(level)
  }
  const stopping = new AbortController()
  let attempt = new AbortController()
  /** The last valid contents of the TLS files. */
  let usedTls: TlsMaterial | undefined
  const subscription = createSubscription(deps, () => {
    start.end()
  })
  const files = tlsFilesOf(config)
  const runOnce = async (signal: AbortSignal): Promise<StreamFailure | undefined> => {
    try {
      usedTls = files && (await readTlsFiles(files))
    } catch (error) {
      const failure = tlsFailure(error)
      if (usedTls === undefined) return failure
      report({ ...failure, message: `${failure.message}; connecting with the last valid ones` })
    }
    const { connectMsMax = CONNECT_MS_MAX } = deps
    return runAdsStream({ config, tls: usedTls, connectMsMax, signal, ...subscription.open() })
  }
  const run = async () => {
    let failures = 0
    while (!stopping.signal.aborted) {
      attempt = new AbortController()
      const signal = AbortSignal.any([stopping.signal, attempt.signal])
      const failure = await runOnce(signal)
      failures = subscription.close() ? 1 : failures + 1
      if (failure === undefined) continue // aborted
      const retryMs = retryDelayMs(config, { reason: failure.reason, failures }, random)
      report(failure, Math.round(retryMs))
      await pause(retryMs, signal)
    }
  }
  const running = run()
  const reconnect = () => {
    attempt.abort()
  }
  const watching =
    files &&
    watchTlsFiles({
      files,
      onChange: (material) => {
        if (isDeepStrictEqual(material, usedTls)) return
        usedTls = material
        reconnect()
      },
      onError: (error) => {
        report(tlsFailure(error))
      },
    })
  return {
    reconnect,
    async stop() {
      stopping.abort(STOPPING)
      await watching?.stop()
      await running
    },
  }
}

/** The files of the settings; `undefined`: plaintext. */
function tlsFilesOf(config: XdsConfig): TlsFiles | undefined {
  if (!config.CONFIG_GRPC_XDS_SERVER_USE_TLS) return undefined
  const pathOf = (path: string) => (path === '' ? undefined : path)
  return {
    certificate: pathOf(config.CONFIG_GRPC_XDS_CLIENT_TLS_CERT),
    key: pathOf(config.CONFIG_GRPC_XDS_CLIENT_TLS_KEY),
    authorities: pathOf(config.CONFIG_GRPC_XDS_SERVER_TLS_CACERT),
  }
}

function tlsFailure(error: unknown): StreamFailure {
  const names = 'CONFIG_GRPC_XDS_CLIENT_TLS_* and CONFIG_GRPC_XDS_SERVER_TLS_CACERT'
  const message = `cannot use the TLS files (${(error as Error).message}): check ${names}`
  return { reason: 'tls_files', message }
}

/** Logs an unexpected error; returns the reason why the version is rejected. */
function logRejection(
  log: AdsClientDeps['log'],
  fields: { readonly version: string; readonly err: unknown },
): Rejection {
  log.error(fields, 'cannot apply the version: it is rejected')
  const message = messageOf(fields.err)
  return { message, isRetryable: false }
}

function nodeOf(config: XdsConfig) {
  return {
    id: config.CONFIG_GRPC_XDS_NODE_ID,
    metadata: config.CONFIG_GRPC_XDS_NODE_METADATA,
    userAgentName: 'curtail',
    userAgentVersion: version,
  }
}

/** Connects the state machine of the subscription to streams and to `apply`. */
function createSubscription(deps: AdsClientDeps, onConnected: () => void) {
  const { config, typeUrl, apply, metrics, log } = deps
  const reporting = createReportSender(deps.reports)
  const node = nodeOf(config)
  let session: Session<Arrived> = newSession
  let stream = 0
  let isHealthy = false
  let openedAtMs = Infinity
  let superseded = new AbortController()
  let sendBytes: (request: Buffer) => void = () => undefined
  const dispatch = (event: SessionEvent<Arrived>) => {
    if (event.kind === 'received' || event.kind === 'closed') superseded.abort()
    const step = stepSession(session, event)
    session = step.session
    for (const action of step.actions) {
      if (action.kind === 'apply') void applyResponse(action.response)
      else {
        const { isFirst, nonce, error } = action
        if (!isFirst) metrics.xdsResponses.inc({ result: error === undefined ? 'ack' : 'nack' })
        const about = { version: action.version, nonce, typeUrl, error }
        sendBytes(writeDiscoveryRequest({ node: isFirst ? node : undefined, ...about }))
      }
    }
  }
  const applyResponse = async (response: Arrived) => {
    superseded = new AbortController()
    if (response.stream !== session.stream) superseded.abort()
    const error = await apply(response, superseded.signal).catch((err: unknown) =>
      logRejection(log, { version: response.version, err }),
    )
    dispatch({ kind: 'applied', error })
  }
  return {
    /** The callbacks of the next stream. */
    open() {
      const own = ++stream
      return {
        onOpen: (send: (request: Buffer) => void) => {
          sendBytes = send
          openedAtMs = monotonicMs()
          onConnected()
          metrics.xdsConnected.set(1)
          log.info({ server: config.CONFIG_GRPC_XDS_SERVER_URL }, 'xDS server connected')
          dispatch({ kind: 'opened', stream: own })
        },
        onMessage: (message: Buffer) => {
          const response = { ...readDiscoveryResponse(message), stream: own }
          isHealthy = true
          reporting.onResponse(response.controlPlane, sendBytes)
          dispatch({ kind: 'received', response })
        },
        lastRequest: reporting.lastRequest,
      }
    },
    /**
     * Records that the stream is closed. Returns whether a response arrived on it, or it was open
     * for longer than the maximum time between attempts: its failure is then the first in a row.
     */
    close(): boolean {
      reporting.onClose()
      metrics.xdsConnected.set(0)
      dispatch({ kind: 'closed', stream })
      const openMs = monotonicMs() - openedAtMs
      const wasHealthy = isHealthy || openMs > config.XDS_CLIENT_BACKOFF_MAX_INTERVAL
      isHealthy = false
      openedAtMs = Infinity
      return wasHealthy
    },
  }
}
