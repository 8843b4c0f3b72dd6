// Server reflection v1 and v1alpha, for tools such as grpcurl. @grpc/reflection produces the
// responses; the streams are this transport's, so that no second gRPC server is needed.
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

/** A handler of the package. */
type Handler = (stream: ReflectionStream) => void

const malformed: CallFault = {
  code: 'INTERNAL',
  details: 'the message is not a valid ServerReflectionRequest',
}

/** Amount of the abuse budget that a message spends: its response is expensive. */
const MESSAGE_COST = 10

/** Both versions of the method by path. */
export function createReflection(): ReadonlyMap<string, OpenReflection> {
  const includeDir = fileURLToPath(new URL('./proto', import.meta.url))
  const definitions = loadSync(['envoy/service/ratelimit/v3/rls.proto', healthProto], {
    includeDirs: [includeDir],
    keepCase: true,
  })
  const methods = new Map<string, OpenReflection>()
  new ReflectionService(withLinkedFiles(definitions)).addToServer({
    addService(service, handlers: UntypedServiceImplementation) {
      for (const [name, definition] of Object.entries(service)) {
        const handler = handlers[name] as unknown as Handler
        methods.set(definition.path, (stream) => openMethod(definition, handler, stream))
      }
    },
  })
  return methods
}

/** A stream with the interface that the package expects. */
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
  handler: Handler,
  stream: CallStream,
): StreamingMethod {
  const emitter = new ReflectionStream(
    (message) => {
      stream.write(definition.responseSerialize(message))
    },
    () => {
      stream.end()
    },
  )
  handler(emitter)
  return {
    message(bytes) {
      stream.spend(MESSAGE_COST)
      let message: unknown
      try {
        message = definition.requestDeserialize(bytes)
      } catch {
        return malformed // every error here means a malformed request
      }
      emitter.emit('data', message)
      return undefined
    },
    halfClosed() {
      emitter.emit('end')
      return undefined
    },
  }
}
