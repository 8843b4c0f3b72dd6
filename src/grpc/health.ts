// grpc.health.v1 for the services that Envoy and load balancers check. A watch is removed with its
// call, and all watches complete when the service closes, so that none delays a stop.
import type { CallStream } from './http2/call-stream.ts'
import type { CallFault, UnaryResponse } from './http2/status-codes.ts'
import type { StreamingMethod } from './streaming-call.ts'
import { WireReader } from './wire-reader.ts'
import { DELIMITED, tagOf, VARINT } from './wire-types.ts'
import { WireWriter } from './wire-writer.ts'

/** This service, and the whole server; other services are unknown. */
const NAMES = ['ratelimit', '']

const SERVICE = tagOf(1, DELIMITED)
const STATUS = tagOf(1, VARINT)
const ENTRY = tagOf(1, DELIMITED)
const ENTRY_KEY = tagOf(1, DELIMITED)
const ENTRY_VALUE = tagOf(2, DELIMITED)

const numbers = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const
type Status = keyof typeof numbers

const unknown: CallFault = {
  code: 'NOT_FOUND',
  details: 'no service of this name is served here',
}
const malformed: CallFault = { code: 'INTERNAL', details: 'the bytes are no HealthCheckRequest' }

/** The status that health checks report. */
export interface HealthService {
  /** Sets the status, and sends it to watches. */
  readonly set: (isServing: boolean) => void
  /** Sets NOT_SERVING for good, and completes all watches. */
  close(): void
  /** The methods of grpc.health.v1.Health. */
  readonly check: (message: Buffer) => UnaryResponse
  readonly list: () => UnaryResponse
  readonly watch: (stream: CallStream) => StreamingMethod
}

/** Creates a health service with status NOT_SERVING. */
export function createHealthService(): HealthService {
  /** Watches of known services. */
  const knownWatches = new Set<CallStream>()
  /** Watches of unknown services: their status never changes. */
  const unknownWatches = new Set<CallStream>()
  let reported: Status = 'NOT_SERVING'
  let isClosed = false
  const report = (isServing: boolean) => {
    const next: Status = isServing ? 'SERVING' : 'NOT_SERVING'
    if (isClosed || next === reported) return
    reported = next
    for (const stream of knownWatches) {
      // A client that has not read earlier updates must start a new watch.
      if (stream.isBlocked) stream.reject(unread)
      else stream.write(renderStatus(reported))
    }
  }
  const watch = (stream: CallStream): StreamingMethod => ({
    message(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      if (knownWatches.has(stream) || unknownWatches.has(stream)) return singleMessage
      const isKnown = NAMES.includes(name)
      ;(isKnown ? knownWatches : unknownWatches).add(stream)
      stream.write(renderStatus(isKnown ? reported : 'SERVICE_UNKNOWN'))
      if (isClosed) stream.end()
      return undefined
    },
    halfClosed() {
      return knownWatches.has(stream) || unknownWatches.has(stream) ? undefined : singleMessage
    },
    closed() {
      knownWatches.delete(stream)
      unknownWatches.delete(stream)
    },
  })
  return {
    set: report,
    close() {
      report(false)
      isClosed = true
      for (const stream of [...knownWatches, ...unknownWatches]) stream.end()
    },
    check(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      return NAMES.includes(name) ? { code: 'OK', message: renderStatus(reported) } : unknown
    },
    list: () => ({ code: 'OK', message: renderList(reported) }),
    watch,
  }
}

const unread: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'earlier updates have not been read',
}
const singleMessage: CallFault = { code: 'UNIMPLEMENTED', details: 'this method takes one message' }

/** The service of a request; undefined if the request is malformed. */
function parseName(message: Buffer): string | undefined {
  const reader = new WireReader(message)
  let name = ''
  try {
    while (reader.at < reader.length) {
      const tag = reader.tag()
      if (tag === SERVICE) name = reader.string()
      else reader.skip(tag)
    }
  } catch {
    return undefined // any error here is the caller's
  }
  return name
}

function renderStatus(status: Status): Buffer {
  return Buffer.from([STATUS, numbers[status]])
}

function renderList(status: Status): Buffer {
  const writer = new WireWriter()
  writer.start()
  for (const name of NAMES) {
    const entry = writer.open(ENTRY)
    writer.string(ENTRY_KEY, name)
    const value = writer.open(ENTRY_VALUE)
    writer.number(STATUS, numbers[status])
    writer.close(value)
    writer.close(entry)
  }
  return writer.finish()
}
