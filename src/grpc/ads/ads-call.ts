// One call of aggregated discovery on an HTTP/2 stream: reads the limiter's requests within bounds,
// and writes one version at a time. Versions are shared by all calls and are never copied.
import type { ServerHttp2Stream } from 'node:http2'
import {
  LEAVE_TYPE_URL,
  type ReceivedRequest,
  readDiscoveryRequest,
} from '../../protobuf/discovery.ts'
import { WireError } from '../../protobuf/wire-reader.ts'
import {
  AUDIT_TYPE_URL,
  parseAuditCounts,
  type RuleHits,
} from '../../limiter/stats/audit-counts.ts'
import { RULES_TYPE_URL } from '../../limiter/rules/version-parser.ts'
import { type CallFault, statusCodes } from '../http2/status-codes.ts'
import { encodeStatusMessage } from '../http2/status-message.ts'
import { MessageReader } from '../message-reader.ts'
import type { Budget } from '../http2/process-bounds.ts'
import type { ReportFault } from './report-faults.ts'
import {
  newStreamState,
  type SendableVersion,
  type StreamEvent,
  type StreamState,
  stepStream,
} from './stream-state.ts'

/** A published version, encoded once for all limiters. */
export interface EncodedVersion extends SendableVersion {
  /** The gRPC message with its prefix. */
  readonly framed: Buffer
}

/** The dependencies of a call. */
export interface AdsCallDeps {
  readonly newest: EncodedVersion | undefined
  readonly report: ReportFault
  /** The connection's budget for incomplete requests. */
  readonly budget: Budget
  /** Called after each change that concerns the limiter, and when the call is closed. */
  readonly onChange: () => void
  /** Called with the active version of a limiter that stops; the call is still open. */
  readonly onLeave: (active: string) => void
  /** Called with each report of the limiter. */
  readonly onAudit: (counts: readonly RuleHits[]) => void
}

/** Larger requests are rejected. The largest contain metadata of the node, faults or a report. */
const REQUEST_BYTES_MAX = 64 * 1024
/** Maximum number, between two checks, of requests that neither subscribe nor settle a version. */
const UNPRODUCTIVE_MAX = 100
const NODE_LENGTH_MAX = 253
const VERSION_LENGTH_MAX = 200
const MESSAGE_LENGTH_MAX = 1000

/** A call that is open until either side closes it. */
export class AdsCall {
  state: StreamState<EncodedVersion>
  /** The node id of the first request; empty before it. */
  node = ''
  isClosed = false
  private readonly stream: ServerHttp2Stream
  private readonly deps: AdsCallDeps
  private readonly reader: MessageReader
  private hasNode = false
  private unproductive = 0
  /** The version that was in flight at the last check, if it was not completely written then. */
  private unwritten: EncodedVersion | undefined
  private status: CallFault | undefined

  constructor(stream: ServerHttp2Stream, deps: AdsCallDeps) {
    this.stream = stream
    this.deps = deps
    this.state = newStreamState(deps.newest)
    this.reader = new MessageReader(deps.budget, 'identity')
    stream.on('data', (chunk: Buffer) => {
      this.read(chunk)
    })
    stream.on('end', () => {
      this.finish()
    })
    stream.on('wantTrailers', () => {
      stream.sendTrailers(trailersOf(this.status))
    })
    stream.on('close', () => {
      this.isClosed = true
      this.reader.clear()
      deps.onChange()
    })
    stream.respond(responseHeaders, { waitForTrailers: true })
  }

  /** Sends a version once the one in flight is settled; only the newest waits. */
  publish(version: EncodedVersion): void {
    this.dispatch({ kind: 'published', version })
  }

  /** Completes the call, with an error status or successfully. */
  finish(status?: CallFault): void {
    if (this.isClosed) return
    this.isClosed = true
    this.status = status
    this.reader.clear()
    this.stream.end()
  }

  /** Must be called periodically. Returns why the call must be closed, or `undefined`. */
  check(): string | undefined {
    this.unproductive = 0
    const { inFlight, isSubscribed } = this.state
    const unwritten = inFlight?.isWritten === false ? inFlight.version : undefined
    const isStalled = unwritten !== undefined && unwritten === this.unwritten
    this.unwritten = unwritten
    if (this.isClosed) return 'the client has no open stream'
    if (!isSubscribed) return 'the client has not subscribed to rules'
    return isStalled ? 'the client does not read the version that is sent' : undefined
  }

  private read(chunk: Buffer): void {
    if (this.isClosed) return
    const { bufferedBytes, nextBytes = 0 } = this.reader
    if (Math.max(bufferedBytes + chunk.length, nextBytes) > REQUEST_BYTES_MAX) {
      this.reject('protocol', tooLarge)
      return
    }
    if (this.reader.add(chunk) !== undefined) {
      this.reject('abuse', overBudget)
      return
    }
    const next = () => (this.isClosed ? undefined : this.reader.next())
    for (let message = next(); message !== undefined; message = next()) {
      if (Buffer.isBuffer(message)) this.receive(message)
      else this.reject('protocol', compressed)
    }
    if (this.reader.bufferedBytes === 0) this.reader.clear()
  }

  private receive(message: Buffer): void {
    let request: ReceivedRequest
    try {
      request = readDiscoveryRequest(message)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.reject('protocol', { code: 'INVALID_ARGUMENT', details: error.message })
      return
    }
    if (!this.hasNode) this.node = request.node.slice(0, NODE_LENGTH_MAX)
    this.hasNode = true
    const { typeUrl, error } = request
    if (typeUrl === RULES_TYPE_URL) {
      const version = request.version.slice(0, VERSION_LENGTH_MAX)
      const message = error?.slice(0, MESSAGE_LENGTH_MAX)
      this.dispatch({ kind: 'request', nonce: request.nonce, version, error: message })
    } else if (typeUrl === AUDIT_TYPE_URL) {
      const counts = parseAuditCounts(request.resourceNames)
      if (counts === undefined) this.deps.report('protocol', 'a limiter sends a malformed report')
      else this.deps.onAudit(counts)
      this.countUnproductive()
    } else if (typeUrl === LEAVE_TYPE_URL) {
      if (this.state.isSubscribed) this.deps.onLeave(this.state.active)
      this.finish()
    } else {
      const type = JSON.stringify(typeUrl.slice(0, VERSION_LENGTH_MAX))
      this.deps.report('type', `a limiter requests resources of another type: ${type}`)
      this.countUnproductive()
    }
  }

  private dispatch(event: StreamEvent<EncodedVersion>): void {
    if (this.isClosed) return
    const { state: before } = this
    const { state, send, isUnproductive } = stepStream(before, event)
    this.state = state
    if (send !== undefined) {
      this.stream.write(send.framed, (error) => {
        if (error === null || error === undefined) this.dispatch({ kind: 'written' })
      })
    }
    if (isUnproductive) this.countUnproductive()
    const { rejected, active, isSubscribed } = state
    if (rejected !== undefined && rejected !== before.rejected) {
      const { version, message } = rejected
      this.deps.report('rejected', `a limiter rejected the version ${version}: ${message}`)
    }
    const isChanged =
      isSubscribed !== before.isSubscribed ||
      active !== before.active ||
      rejected !== before.rejected
    if (isChanged) this.deps.onChange()
  }

  private countUnproductive(): void {
    this.unproductive += 1
    if (this.unproductive > UNPRODUCTIVE_MAX) this.reject('abuse', tooMany)
  }

  private reject(reason: Parameters<ReportFault>[0], status: CallFault): void {
    this.deps.report(reason, `the stream of a limiter is closed: ${status.details}`)
    this.finish(status)
  }
}

/** Rejects a call of another method, or a request that is not gRPC. */
export function rejectCall(stream: ServerHttp2Stream, isGrpc: boolean): void {
  const headers = isGrpc ? { ...responseHeaders, ...trailersOf(otherMethod) } : { ':status': 415 }
  stream.respond(headers, { endStream: true })
  stream.close()
}

function trailersOf(fault: CallFault | undefined) {
  if (fault === undefined) return { 'grpc-status': '0' }
  return {
    'grpc-status': String(statusCodes[fault.code]),
    'grpc-message': encodeStatusMessage(fault.details),
  }
}

const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' }
const tooLarge: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: `a request must have fewer than ${REQUEST_BYTES_MAX} bytes`,
}
const overBudget: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many incomplete requests are in flight',
}
const compressed: CallFault = {
  code: 'UNIMPLEMENTED',
  details: 'requests must not be compressed',
}
const tooMany: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'too many requests that neither accept nor reject the version in flight',
}
const otherMethod: CallFault = {
  code: 'UNIMPLEMENTED',
  details: 'unknown method: this server implements StreamAggregatedResources',
}
