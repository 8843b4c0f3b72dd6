// A gRPC client that does not use Curtail's codec (grpc-js with the .proto files), and a listener
// in this process whose decision the test sets.
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { serveGrpc, type GrpcServeDeps, type GrpcServer } from '../../../src/grpc/serve.ts'
import { grpcSettings } from '../../../src/grpc/settings.ts'
import type { DecideLimits, Verdict } from '../../../src/limits/verdict.ts'
import { parseConfig } from '../../../src/config/config.ts'

const PROTOS = new URL('../../../src/grpc/proto', import.meta.url).pathname

/** The messages and services of Envoy's API, as protobufjs reads them. */
const envoyApi = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [PROTOS],
  longs: String,
  enums: String,
  defaults: true,
})

/** A client; responses are plain objects, errors are grpc.ServiceError. */
export interface TestClient {
  call(request: object, options?: grpc.CallOptions): Promise<Record<string, unknown>>
  /** Sends raw bytes as the message; resolves with the name of the status code. */
  send(bytes: Buffer): Promise<{ code: string; details: string }>
  readonly raw: grpc.Client
  close(): void
}

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const { ShouldRateLimit: method } = envoyApi[
  'envoy.service.ratelimit.v3.RateLimitService'
] as grpc.ServiceDefinition
const asBytes = (bytes: Buffer) => bytes
const CALL_MS_MAX = 10_000

/** Creates a client of `target`, such as `127.0.0.1:8081` or `unix:/run/x.sock`. */
export function createTestClient(
  target: string,
  credentials = grpc.credentials.createInsecure(),
  options: grpc.ClientOptions = {},
): TestClient {
  if (method === undefined) throw new Error('the .proto files do not define ShouldRateLimit')
  const raw = new grpc.Client(target, credentials, {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_send_message_length': -1,
    ...options,
  })
  const { requestSerialize, responseDeserialize } = method
  const deadline = () => Date.now() + CALL_MS_MAX
  return {
    raw,
    call: (request, given = {}) =>
      new Promise((resolve, reject) => {
        const callOptions = { deadline: deadline(), ...given }
        raw.makeUnaryRequest(
          PATH,
          requestSerialize,
          responseDeserialize as (bytes: Buffer) => Record<string, unknown>,
          request,
          callOptions,
          (error, response) => {
            if (error !== null || response === undefined) reject(error ?? new Error('no response'))
            else resolve(response)
          },
        )
      }),
    send: (bytes) =>
      new Promise((resolve) => {
        const callOptions = { deadline: deadline() }
        raw.makeUnaryRequest(PATH, asBytes, asBytes, bytes, callOptions, (error) => {
          resolve({
            code: grpc.status[error?.code ?? grpc.status.OK],
            details: error?.details ?? '',
          })
        })
      }),
    close: () => {
      raw.close()
    },
  }
}

/** Admits every request, with a fixed verdict. */
export const admitAll: DecideLimits = ({ descriptors }) => {
  const verdict: Verdict = {
    code: 'OK',
    statuses: descriptors.map(() => ({
      code: 'OK',
      currentLimit: { requestsPerUnit: 20, unit: 'MINUTE', name: undefined },
      limitRemaining: 19,
      resetSeconds: 60,
    })),
    responseHeaders: [['X-RateLimit-Limit', '20']],
    body: undefined,
    dynamicMetadata: { rls: 'ok' },
  }
  return Promise.resolve(verdict)
}

/** A listener, and the calls, defects and errors that it reports. */
export interface TestServer extends GrpcServer {
  readonly calls: { seconds: number; code: string }[]
  readonly defects: unknown[]
  readonly errors: unknown[]
}

/** Starts a listener on a free port of loopback, or as `env` sets. */
export async function startTestServer(
  env: Readonly<Record<string, string>> = {},
  given: Partial<GrpcServeDeps> = {},
): Promise<TestServer> {
  const config = parseConfig(grpcSettings, { GRPC_HOST: '127.0.0.1', GRPC_PORT: '0', ...env })
  const calls: TestServer['calls'] = []
  const defects: unknown[] = []
  const errors: unknown[] = []
  const server = await serveGrpc({
    config,
    decide: admitAll,
    onCall: (call) => calls.push(call),
    onDefect: (error) => defects.push(error),
    onError: (error) => errors.push(error),
    ...given,
  })
  server.setServing(true)
  return { ...server, calls, defects, errors }
}
