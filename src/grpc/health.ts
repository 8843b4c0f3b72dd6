// grpc.health.v1 for the names that Envoy and load balancers ask. Each watcher is forgotten when
// its call ends, and every watch ends with the service: none keeps a process from stopping.
import {
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'

/** Of this service and of the whole server; other names are unknown. */
const NAMES = ['ratelimit', '']

interface Asked {
  readonly service: string
}

interface Told {
  readonly status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN'
}

/** What health checks are told. */
export interface HealthService {
  /** Tells it to who asks from now on and to who watches. */
  readonly set: (isServing: boolean) => void
  /** Not serving from now on; ends the watches. */
  end(): void
  /** Answers of the methods of grpc.health.v1.Health. */
  readonly handlers: UntypedServiceImplementation
}

/** Makes a health service that does not serve yet. */
export function createHealthService(): HealthService {
  const watches = new Set<ServerWritableStream<Asked, Told>>()
  let told: Told = { status: 'NOT_SERVING' }
  let hasEnded = false
  const isKnown = ({ service }: Asked) => NAMES.includes(service)
  const tell = (isServing: boolean) => {
    const next: Told = { status: isServing ? 'SERVING' : 'NOT_SERVING' }
    if (hasEnded || next.status === told.status) return
    told = next
    for (const watch of watches) if (isKnown(watch.request)) watch.write(told)
  }
  const check = (call: ServerUnaryCall<Asked, Told>, respond: sendUnaryData<Told>) => {
    if (isKnown(call.request)) respond(null, told)
    else respond({ code: status.NOT_FOUND, details: 'no service of this name is served here' })
  }
  const watch = (call: ServerWritableStream<Asked, Told>) => {
    watches.add(call)
    call.once('cancelled', () => watches.delete(call)) // comes however the call ends
    call.write(isKnown(call.request) ? told : { status: 'SERVICE_UNKNOWN' })
  }
  const list = (_call: ServerUnaryCall<unknown, unknown>, respond: sendUnaryData<unknown>) => {
    respond(null, { statuses: Object.fromEntries(NAMES.map((name) => [name, told])) })
  }
  return {
    set: tell,
    end() {
      tell(false)
      hasEnded = true
      for (const call of watches) call.end()
    },
    handlers: { check, watch, list },
  }
}
