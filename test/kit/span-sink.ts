// Receives OpenTelemetry spans as raw bytes, over HTTP and gRPC, so that a test can search all that
// the programs send: the collector's output lacks some fields.
import { createServer, type Server } from 'node:http'
import * as http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Collector } from '../stack/tracing-environment.ts'

/** A running receiver. */
export interface SpanSink extends Collector {
  stop(): Promise<void>
}

const BODY_BYTES_MAX = 64 * 1024 * 1024
/** A gRPC message without content. */
const EMPTY_MESSAGE = Buffer.alloc(5)

/** Starts it; `onExport` is called with the body of each export. */
export async function startSpanSink(onExport: (body: Buffer) => void): Promise<SpanSink> {
  const http = createServer((req, res) => {
    const body = collect(req)
    req.on('end', () => {
      onExport(body() ?? Buffer.alloc(0))
      const status = body() === undefined ? 400 : 200
      res.writeHead(status, { 'Content-Type': 'application/x-protobuf' }).end()
    })
  })
  const sessions = new Set<http2.Http2Session>()
  const grpc = http2.createServer()
  grpc.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  grpc.on('stream', (stream) => {
    const body = collect(stream)
    stream.on('error', () => undefined) // the sender stops with exports in flight
    stream.on('end', () => {
      onExport(body() ?? Buffer.alloc(0))
      const headers = { ':status': 200, 'content-type': 'application/grpc' }
      stream.respond(headers, { waitForTrailers: true })
      const status = body() === undefined ? RESOURCE_EXHAUSTED : OK
      stream.on('wantTrailers', () => {
        stream.sendTrailers({ 'grpc-status': String(status) })
      })
      stream.end(EMPTY_MESSAGE)
    })
  })
  return {
    httpPort: await listen(http),
    grpcPort: await listen(grpc),
    async stop() {
      http.closeAllConnections()
      for (const session of sessions) session.destroy()
      for (const server of [http, grpc]) await new Promise((resolve) => server.close(resolve))
    },
  }
}

const OK = 0
const RESOURCE_EXHAUSTED = 8

/** Collects a body; the result is `undefined` if it is too large. */
function collect(stream: NodeJS.ReadableStream): () => Buffer | undefined {
  const chunks: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk)
  })
  return () => (bytes <= BODY_BYTES_MAX ? Buffer.concat(chunks) : undefined)
}

async function listen(server: Server | http2.Http2Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  return (server.address() as AddressInfo).port
}
