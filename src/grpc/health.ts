// grpc.health.v1, for Envoy and load balancers. A watch is removed when its call closes, and all
// watches complete when the health service closes, so that they do not delay the shutdown.
import type { CallStream } from './http2/call-stream.ts'
import type { CallFault, UnaryResponse } from './http2/status-codes.ts'
import type { StreamingMethod } from './streaming-call.ts'
import { singleMessage } from './unary-call.ts'
import { WireReader } from '../protobuf/wire-reader.ts'
import { DELIMITED, tagOf, VARINT } from '../protobuf/wire-types.ts'
import { WireWriter } from '../protobuf/wire-writer.ts'

/** The names that have a status: the service, and '' for the whole server. */
const SERVICE_NAMES = ['ratelimit', '']

const SERVICE = tagOf(1, DELIMITED)
const STATUS = tagOf(1, VARINT)
const ENTRY = tagOf(1, DELIMITED)
const ENTRY_KEY = tagOf(1, DELIMITED)
const ENTRY_VALUE = tagOf(2, DELIMITED)

const statusNumbers = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const
type Status = keyof typeof statusNumbers

const unknownService: CallFault = { code: 'NOT_FOUND', details: 'unknown service' }
const malformed: CallFault = {
  code: 'INTERNAL',
  details: 'the message is not a valid HealthCheckRequest',
}

/** The status that health checks report. */
export interface HealthService {
  /** Sets the status and sends it to all watches. */
  readonly set: (isServing: boolean) => void
  /** Sets NOT_SERVING permanently and completes all watches. */
  close(): void
  /** The methods of grpc.health.v1.Health. */
  readonly check: (message: Buffer) => UnaryResponse
  readonly list: () => UnaryResponse
  readonly watch: (stream: CallStream) => StreamingMethod
}

/** Creates a health service with status NOT_SERVING. */
export function createHealthService(): HealthService {
  /** Watches of the services in SERVICE_NAMES. */
  const servedWatches = new Set<CallStream>()
  /** Watches of other services, whose status never changes. */
  const otherWatches = new Set<CallStream>()
  let reported: Status = 'NOT_SERVING'
  let isClosed = false
  const report = (isServing: boolean) => {
    const next: Status = isServing ? 'SERVING' : 'NOT_SERVING'
    if (isClosed || next === reported) return
    reported = next
    for (const stream of servedWatches) {
      // A client that has not read earlier updates must start a new watch.
      if (stream.hasPendingOutput) stream.reject(unreadUpdates)
      else stream.write(renderStatus(reported))
    }
  }
  const watch = (stream: CallStream): StreamingMethod => ({
    message(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      if (servedWatches.has(stream) || otherWatches.has(stream)) return singleMessage
      const isServed = SERVICE_NAMES.includes(name)
      ;(isServed ? servedWatches : otherWatches).add(stream)
      stream.write(renderStatus(isServed ? reported : 'SERVICE_UNKNOWN'))
      if (isClosed) stream.end()
      return undefined
    },
    halfClosed() {
      return servedWatches.has(stream) || otherWatches.has(stream) ? undefined : singleMessage
    },
    closed() {
      servedWatches.delete(stream)
      otherWatches.delete(stream)
    },
  })
  return {
    set: report,
    close() {
      report(false)
      isClosed = true
      for (const stream of [...servedWatches, ...otherWatches]) stream.end()
    },
    check(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      return SERVICE_NAMES.includes(name)
        ? { code: 'OK', message: renderStatus(reported) }
        : unknownService
    },
    list: () => ({ code: 'OK', message: renderList(reported) }),
    watch,
  }
}

const unreadUpdates: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'the client has not read earlier updates',
}

/** The service of a request; `undefined` if the request is malformed. */
function parseName(message: Buffer): string | undefined {
  const reader = new WireReader(message, 'HealthCheckRequest')
  let name = ''
  try {
    while (reader.at < reader.length) {
      const tag = reader.tag()
      if (tag === SERVICE) name = reader.string()
      else reader.skip(tag)
    }
  } catch {
    return undefined // every error here means a malformed request
  }
  return name
}

function renderStatus(status: Status): Buffer {
  return Buffer.from([STATUS, statusNumbers[status]])
}

function renderList(status: Status): Buffer {
  const writer = new WireWriter()
  writer.start()
  for (const name of SERVICE_NAMES) {
    const entry = writer.open(ENTRY)
    writer.string(ENTRY_KEY, name)
    const value = writer.open(ENTRY_VALUE)
    writer.number(STATUS, statusNumbers[status])
    writer.close(value)
    writer.close(entry)
  }
  return writer.finish()
}
