// Server reflection v1 and v1alpha, by which tools such as grpcurl learn what is served here. A
// client that asks and does not read is asked to wait: its answers are not heaped up.
import { fileURLToPath } from 'node:url'
import type { ServerDuplexStream, UntypedServiceImplementation } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { ReflectionService } from '@grpc/reflection'
import { protoPath as healthProto } from 'grpc-health-check'

type AddService = Parameters<ReflectionService['addToServer']>[0]['addService']

/** Adds both versions to a server. */
export function addReflection(addService: AddService): void {
  const ours = fileURLToPath(new URL('./proto', import.meta.url))
  const served = loadSync(['envoy/service/ratelimit/v3/rls.proto', healthProto], {
    includeDirs: [ours],
    keepCase: true,
  })
  new ReflectionService(served).addToServer({
    addService: (service, handlers) => {
      addService(service, paced(handlers))
    },
  })
}

/** The same methods; each reads no further while its answers wait to be read. */
function paced(handlers: UntypedServiceImplementation): UntypedServiceImplementation {
  const pairs = Object.entries(handlers).map(([name, handle]) => {
    const answer = handle as (stream: ServerDuplexStream<unknown, unknown>) => void
    return [
      name,
      (stream: ServerDuplexStream<unknown, unknown>) => {
        const write = stream.write.bind(stream) as (message: unknown) => boolean
        const pacedWrite = (message: unknown) => {
          const isTaken = write(message)
          if (!isTaken) {
            stream.pause()
            stream.once('drain', () => stream.resume())
          }
          return isTaken
        }
        Object.assign(stream, { write: pacedWrite })
        answer(stream)
      },
    ]
  })
  return Object.fromEntries(pairs) as UntypedServiceImplementation
}
