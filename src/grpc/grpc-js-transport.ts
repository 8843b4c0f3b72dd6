// The transport on @grpc/grpc-js: ShouldRateLimit, health and reflection on the connections given.
// Messages stay bytes here, so that a malformed one is answered by us and not by the library.
import {
  logVerbosity,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js'
import { service as healthService } from 'grpc-health-check'
import { createHealthService } from './health.ts'
import { addReflection } from './reflection.ts'
import { answerCalls, type CallDeps } from './should-rate-limit.ts'
import type { ConnectionAge, RateLimitTransport } from './transport.ts'

/** Bytes of the largest message that is read, unpacked. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
/** Calls at once on one connection. */
const STREAMS_MAX = 1000
/** A connection that sends nothing is asked whether it lives, and is cut without an answer. */
const KEEPALIVE_MS = 60_000
const KEEPALIVE_ANSWER_MS = 20_000

const asBytes = (bytes: Buffer) => bytes

const rateLimitService: ServiceDefinition = {
  ShouldRateLimit: {
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  },
}

/** Makes the transport. */
export function createGrpcJsTransport(deps: CallDeps & ConnectionAge): RateLimitTransport {
  // It writes a line on stderr for each header that it does not like: a client's way to our log.
  setLogVerbosity(logVerbosity.NONE)
  const server = new Server({
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_concurrent_streams': STREAMS_MAX,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_ANSWER_MS,
    ...(deps.ageMsMax > 0 && {
      'grpc.max_connection_age_ms': deps.ageMsMax,
      'grpc.max_connection_age_grace_ms': deps.graceMs,
    }),
  })
  const answer = answerCalls(deps)
  const health = createHealthService()
  server.addService(rateLimitService, {
    ShouldRateLimit(call: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>) {
      answer(call.request)
        .then((answered) => {
          if (answered.code === 'OK') respond(null, answered.message)
          else respond({ code: status[answered.code], details: answered.details })
        })
        .catch(deps.onDefect)
    },
  })
  server.addService(healthService, health.handlers)
  addReflection(server.addService.bind(server))
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  return {
    serve: (connection) => {
      injector.injectConnection(connection)
    },
    setServing: health.set,
    close() {
      health.end()
      server.tryShutdown(() => undefined) // says nothing of connections that it did not accept
    },
  }
}
