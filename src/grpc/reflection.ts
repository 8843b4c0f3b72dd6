// Server reflection v1 and v1alpha, by which tools such as grpcurl learn what is served here. The
// package answers what is asked; the streams are ours, so that no server of another kind is needed.
import { EventEmitter } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { MethodDefinition, UntypedServiceImplementation } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { ReflectionService } from '@grpc/reflection'
import { protoPath as healthProto } from 'grpc-health-check'
import { withLinkedFiles } from './file-descriptors.ts'
import type { CallStream } from './http2/call-stream.ts'
import type { CallFault } from './http2/status-codes.ts'
import type { StreamingMethod } from './streaming-call.ts'

/** Opens one of the methods on a stream. */
export type OpenReflection = (stream: CallStream) => StreamingMethod

/** What a handler of the package does with a stream. */
type Listen = (stream: ReflectionStream) => void

const malformed: CallFault = {
  code: 'INTERNAL',
  details: 'the bytes are no ServerReflectionRequest',
}

/** What a message costs of its connection's budget: it takes long to answer. */
const MESSAGE_COST = 10

/** Both versions of the method, by their paths. */
export function createReflection(): ReadonlyMap<string, OpenReflection> {
  const ours = fileURLToPath(new URL('./proto', import.meta.url))
  const served = loadSync(['envoy/service/ratelimit/v3/rls.proto', healthProto], {
    includeDirs: [ours],
    keepCase: true,
  })
  const methods = new Map<string, OpenReflection>()
  new ReflectionService(withLinkedFiles(served)).addToServer({
    addService(service, handlers: UntypedServiceImplementation) {
      for (const [name, definition] of Object.entries(service)) {
        const listen = handlers[name] as unknown as Listen
        methods.set(definition.path, (stream) => openMethod(definition, listen, stream))
      }
    },
  })
  return methods
}

/** What the package sees of a stream. */
class ReflectionStream extends EventEmitter {
  readonly write: (message: unknown) => void
  readonly end: () => void

  constructor(write: (message: unknown) => void, end: () => void) {
    super()
    this.write = write
    this.end = end
  }
}

function openMethod(
  definition: MethodDefinition<unknown, unknown>,
  listen: Listen,
  stream: CallStream,
): StreamingMethod {
  const seen = new ReflectionStream(
    (message) => {
      stream.write(definition.responseSerialize(message))
    },
    () => {
      stream.end()
    },
  )
  listen(seen)
  return {
    message(bytes) {
      stream.spend(MESSAGE_COST)
      let message: unknown
      try {
        message = definition.requestDeserialize(bytes)
      } catch {
        return malformed // it is the caller's fault, whatever it is
      }
      seen.emit('data', message)
      return undefined
    },
    ended() {
      seen.emit('end')
      return undefined
    },
  }
}
