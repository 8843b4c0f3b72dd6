// A gRPC listener in its own process, for hostile clients: it prints its port to stdout and each
// error to stderr, and exits when its stdin closes.
import { serveGrpc } from '../../../src/grpc/serve.ts'
import { grpcSettings } from '../../../src/grpc/settings.ts'
import { parseConfig } from '../../../src/config/config.ts'

const printError = (error: unknown) => {
  process.stderr.write(`${String(error)}\n`)
}
const server = await serveGrpc({
  config: parseConfig(grpcSettings, { GRPC_HOST: '127.0.0.1', GRPC_PORT: '0' }),
  decide: ({ descriptors }) =>
    Promise.resolve({
      code: 'OK',
      statuses: descriptors.map(() => ({
        code: 'OK',
        currentLimit: undefined,
        limitRemaining: 1,
        resetSeconds: undefined,
      })),
      responseHeaders: [],
      body: undefined,
      dynamicMetadata: undefined,
    }),
  onCall: () => undefined,
  onDefect: printError,
  onError: printError,
})
server.setServing(true)
process.stdout.write(`${server.port}\n`)
process.stdin.resume().on('end', () => {
  void server.close().then(() => {
    process.exit(0)
  })
})
