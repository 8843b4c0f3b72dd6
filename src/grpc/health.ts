// grpc.health.v1 for the names that Envoy and load balancers ask. Each watcher is forgotten when
// its call ends, and every watch ends with the service: none keeps a process from stopping.
import type { CallStream } from './http2/call-stream.ts'
import type { CallFault, UnaryAnswer } from './http2/status-codes.ts'
import type { StreamingMethod } from './streaming-call.ts'
import { WireReader } from './wire-reader.ts'
import { DELIMITED, tagOf, VARINT } from './wire-types.ts'
import { WireWriter } from './wire-writer.ts'

/** Of this service and of the whole server; other names are unknown. */
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

/** What health checks are told. */
export interface HealthService {
  /** Tells it to who asks from now on and to who watches. */
  readonly set: (isServing: boolean) => void
  /** Not serving from now on; ends the watches. */
  end(): void
  /** The methods of grpc.health.v1.Health. */
  readonly check: (message: Buffer) => UnaryAnswer
  readonly list: () => UnaryAnswer
  readonly watch: (stream: CallStream) => StreamingMethod
}

/** Makes a health service that does not serve yet. */
export function createHealthService(): HealthService {
  /** The streams of who watches a service that there is. */
  const watches = new Set<CallStream>()
  /** The others; they are told nothing more. */
  const vain = new Set<CallStream>()
  let told: Status = 'NOT_SERVING'
  let hasEnded = false
  const tell = (isServing: boolean) => {
    const next: Status = isServing ? 'SERVING' : 'NOT_SERVING'
    if (hasEnded || next === told) return
    told = next
    for (const stream of watches) {
      // Who does not read what it was told before is to ask anew.
      if (stream.isBlocked) stream.refuse(unread)
      else stream.write(renderStatus(told))
    }
  }
  const watch = (stream: CallStream): StreamingMethod => ({
    message(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      if (watches.has(stream) || vain.has(stream)) return oneRequest
      const isKnown = NAMES.includes(name)
      ;(isKnown ? watches : vain).add(stream)
      stream.write(renderStatus(isKnown ? told : 'SERVICE_UNKNOWN'))
      if (hasEnded) stream.end()
      return undefined
    },
    ended() {
      return watches.has(stream) || vain.has(stream) ? undefined : oneRequest
    },
    over() {
      watches.delete(stream)
      vain.delete(stream)
    },
  })
  return {
    set: tell,
    end() {
      tell(false)
      hasEnded = true
      for (const stream of [...watches, ...vain]) stream.end()
    },
    check(message) {
      const name = parseName(message)
      if (name === undefined) return malformed
      return NAMES.includes(name) ? { code: 'OK', message: renderStatus(told) } : unknown
    },
    list: () => ({ code: 'OK', message: renderList(told) }),
    watch,
  }
}

const unread: CallFault = {
  code: 'RESOURCE_EXHAUSTED',
  details: 'what was told before has not been read',
}
const oneRequest: CallFault = { code: 'UNIMPLEMENTED', details: 'this method takes one message' }

/** The service asked about; undefined where the bytes are no request. */
function parseName(message: Buffer): string | undefined {
  const reader = new WireReader(message)
  let name = ''
  try {
    while (reader.at < reader.length) {
      const tag = reader.tag()
      if (tag === SERVICE) name = reader.text()
      else reader.skip(tag)
    }
  } catch {
    return undefined // it is the caller's fault, whatever it is
  }
  return name
}

function renderStatus(status: Status): Buffer {
  return Buffer.from([STATUS, numbers[status]])
}

function renderList(status: Status): Buffer {
  const writer = new WireWriter()
  writer.begin()
  for (const name of NAMES) {
    const entry = writer.open(ENTRY)
    writer.text(ENTRY_KEY, name)
    const value = writer.open(ENTRY_VALUE)
    writer.number(STATUS, numbers[status])
    writer.close(value)
    writer.close(entry)
  }
  return writer.end()
}
