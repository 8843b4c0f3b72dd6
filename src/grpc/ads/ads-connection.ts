// One HTTP/2 connection of a limiter: serves one call at a time, pings the limiter, and closes the
// connection if the limiter does not respond, subscribe or read.
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Duplex } from 'node:stream'
import type { Budget } from '../http2/process-bounds.ts'
import { ADS_METHOD } from '../../protobuf/discovery.ts'
import { AdsCall, type AdsCallDeps, type EncodedVersion, rejectCall } from './ads-call.ts'
import type { ReportFault } from './report-faults.ts'

/** The dependencies of a connection. */
export interface AdsConnectionDeps {
  readonly newest: () => EncodedVersion | undefined
  readonly report: ReportFault
  /** The budget for incomplete requests. */
  readonly budget: Budget
  readonly onChange: () => void
  readonly onLeave: AdsCallDeps['onLeave']
  readonly onAudit: AdsCallDeps['onAudit']
  readonly onClose: () => void
  /** The interval of pings, and the time within which a limiter must respond. */
  readonly keepaliveMs: number
}

/** Why a connection without a call of aggregated discovery is closed. */
const NO_STREAM = 'the client has not opened a stream'
const options = { settings: { maxConcurrentStreams: 1, maxHeaderListSize: 16 * 1024 } }

/** A connection, from its TLS handshake until either side closes it. */
export class AdsConnection {
  private readonly session: ServerHttp2Session
  private readonly deps: AdsConnectionDeps
  private call: AdsCall | undefined
  private isPingPending = false

  constructor(socket: Duplex, deps: AdsConnectionDeps) {
    this.deps = deps
    this.session = performServerHandshake(socket, options)
    const check = () => {
      this.check()
    }
    // After a stall of this process, responses to pings that have arrived are read first.
    const timer = setInterval(() => setImmediate(check), deps.keepaliveMs)
    this.session.on('stream', (stream, headers) => {
      this.open(stream, headers)
    })
    this.session.on('error', (error: NodeJS.ErrnoException) => {
      const isProtocol = error.code?.startsWith('ERR_HTTP2') === true
      if (!isProtocol) return
      const causes = 'the connection of a limiter failed, or the client does not use HTTP/2'
      deps.report('protocol', `${causes}: ${error.message}`)
    })
    this.session.on('close', () => {
      clearInterval(timer)
      deps.onClose()
    })
  }

  /** The open call of a limiter that has subscribed. */
  get subscribed(): AdsCall | undefined {
    const { call } = this
    return call?.isClosed === false && call.state.isSubscribed ? call : undefined
  }

  publish(version: EncodedVersion): void {
    this.call?.publish(version)
  }

  /** Completes the call, then closes the connection; waits for a limiter that reads slowly. */
  close(): void {
    this.call?.finish()
    this.session.close()
  }

  /** Closes the connection immediately. */
  destroy(): void {
    this.session.destroy()
  }

  private open(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => undefined) // 'close' follows
    if (stream.destroyed || stream.closed) return // the client has reset it
    const isGrpc = headers['content-type']?.startsWith('application/grpc') === true
    if (!isGrpc || headers[':path'] !== ADS_METHOD) {
      this.deps.report('protocol', 'a call is rejected: it is not StreamAggregatedResources')
      rejectCall(stream, isGrpc)
      return
    }
    this.call = new AdsCall(stream, { ...this.deps, newest: this.deps.newest() })
  }

  private check(): void {
    if (this.session.destroyed) return
    const fault = this.call === undefined ? NO_STREAM : this.call.check()
    const sentence = this.isPingPending ? 'the client does not respond to pings' : fault
    if (sentence !== undefined) {
      this.deps.report('timeout', `the connection of a limiter is closed: ${sentence}`)
      this.session.destroy(undefined, constants.NGHTTP2_CANCEL)
      return
    }
    this.isPingPending = true
    this.session.ping((error) => {
      this.isPingPending = error !== null
    })
  }
}
