// The HTTP transport against a real server: headers, credentials, and which connections it uses.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createAuthority } from '../../test/kit/ratelimit/grpc-certificates.ts'
import { waitFor } from '../../test/kit/wait-for.ts'
import type { Credentials } from './access.ts'
import { KubeError } from './kube-error.ts'
import { createTransport, type KubeRequest, type Transport } from './transport.ts'

interface Received {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** The port of the client. */
  readonly port: number | undefined
}

const open = new Set<Socket>()
let server: Server
let transport: Transport
let received: Received[]
let invalidations: number
let credentials: () => Promise<Credentials>
/** Responds to the request with this number, from 1. */
let respond: (res: ServerResponse, nth: number) => void

async function start(created: Server): Promise<number> {
  server = created
  server.keepAliveTimeout = 120_000 // only the transport closes idle connections
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

const onRequest = async (req: IncomingMessage, res: ServerResponse) => {
  const { method, url, headers, socket } = req
  const port = socket.remotePort
  let body = ''
  for await (const chunk of req) body += String(chunk)
  received.push({ method, url, headers, body, port })
  respond(res, received.length)
}
const listener = (req: IncomingMessage, res: ServerResponse) => void onRequest(req, res)

beforeEach(async () => {
  received = []
  invalidations = 0
  respond = (res) => res.end('{}')
  const port = await start(createServer(listener))
  const plain = { server: `http://127.0.0.1:${port}`, headers: { Authorization: 'x' }, tls: {} }
  credentials = () => Promise.resolve(plain)
  transport = createTransport({
    namespace: 'n',
    read: () => credentials(),
    invalidate: () => invalidations++,
  })
})
afterEach(async () => {
  transport.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Sends a request; returns the status and the body. */
async function send(more: Partial<KubeRequest> = {}): Promise<readonly [number, string]> {
  const { signal } = new AbortController()
  const response = await transport.send({ method: 'GET', path: '/x?a=b', signal, ...more })
  const chunks: Buffer[] = []
  for await (const chunk of response.body) chunks.push(chunk)
  await new Promise((resolve) => setImmediate(resolve)) // until the connection is free
  return [response.status, Buffer.concat(chunks).toString()]
}
const failureOf = (more?: Partial<KubeRequest>) => send(more).catch((error: unknown) => error)
const ports = () => new Set(received.map(({ port }) => port)).size

test('sends the method, the path and the credentials, and returns the response', async () => {
  respond = (res) => res.writeHead(404, { 'Retry-After': '1' }).end('no')
  expect(transport.host()).toBe('unknown')
  expect(await send({ accept: 'application/yaml' })).toEqual([404, 'no'])
  expect(received).toMatchObject([
    { method: 'GET', url: '/x?a=b', body: '', headers: { authorization: 'x' } },
  ])
  expect(received[0]?.headers).toMatchObject({
    ...{ accept: 'application/yaml', 'user-agent': 'curtail-controller' },
  })
  expect(received[0]?.headers['content-type']).toBeUndefined()
  expect(received[0]?.headers['content-length']).toBeUndefined()
  expect(transport.host()).toBe((await credentials()).server.slice('http://'.length))
})

test('sends a body with its type and its length in bytes', async () => {
  await send({ method: 'POST', body: '"é"', contentType: 'application/json' })
  expect(received).toMatchObject([
    {
      ...{ method: 'POST', body: '"é"' },
      headers: {
        ...{ accept: 'application/json', 'content-type': 'application/json' },
        'content-length': '4',
      },
    },
  ])
  expect(received[0]?.headers['transfer-encoding']).toBeUndefined()
})

test('the address of the server may end with a slash, and may have a path', async () => {
  const { server: address, ...others } = await credentials()
  credentials = () => Promise.resolve({ ...others, server: `${address}/clusters/a/` })
  await send()
  expect(received[0]?.url).toBe('/clusters/a/x?a=b')
})

test('only the status 401 invalidates the credentials', async () => {
  respond = (res, nth) => res.writeHead(nth === 1 ? 403 : 401).end()
  await send()
  expect(invalidations).toBe(0)
  expect(await send()).toEqual([401, ''])
  expect(invalidations).toBe(1)
})

test('unreadable credentials fail the request, with their cause', async () => {
  credentials = () => Promise.reject(new Error('no token'))
  const error = await failureOf()
  expect(error).toBeInstanceOf(KubeError)
  expect(error).toMatchObject({ status: 0, reason: 'Unreachable', cause: new Error('no token') })
  expect([String(error), received]).toEqual([expect.stringContaining('no token'), []])
})

test('requests share a connection, except those for caches', async () => {
  await send()
  await send()
  expect(ports()).toBe(1)
  await send({ isForCache: true })
  await send({ isForCache: true })
  await send({ isForCache: false })
  expect(ports()).toBe(2)
})

test('at most 64 connections are open, besides those for caches', async () => {
  respond = (res) => res.req.url === '/last' && res.end('{}')
  const stopping = new AbortController()
  const { signal } = stopping
  const calls = [false, true].flatMap((isForCache) =>
    Array.from({ length: 66 }, () => failureOf({ isForCache, signal })),
  )
  await waitFor('the requests to arrive', () => received.length === 64 + 66)
  await send({ isForCache: true, path: '/last' }) // connections are accepted in their order
  expect([open.size, received.length]).toEqual([64 + 67, 64 + 67])
  stopping.abort()
  expect(await Promise.all(calls)).toHaveLength(132)
})

test('new TLS material replaces the connections, new headers do not', async () => {
  await send()
  const { headers, ...others } = await credentials()
  credentials = () => Promise.resolve({ ...others, headers: { ...headers, other: 'y' } })
  await send()
  expect([ports(), received[1]?.headers['other']]).toEqual([1, 'y'])
  credentials = () => Promise.resolve({ ...others, headers, tls: { ca: 'CA' } })
  await send()
  expect(ports()).toBe(2)
  await waitFor('the first connection to close', () => open.size === 1)
})

test('a request on a reused connection that the server closes is retried once', async () => {
  respond = (res, nth) => (nth === 2 ? res.destroy() : res.end(`${nth}`))
  await send()
  expect(await send()).toEqual([200, '3'])
  expect(ports()).toBe(2)
})

test('a request is not retried a second time', async () => {
  respond = (res, nth) => (nth === 1 ? res.end() : res.destroy())
  await send()
  expect(await failureOf()).toMatchObject({ status: 0, reason: 'Unreachable' })
  expect(received).toHaveLength(3)
})

test('a request on a new connection that the server closes is not retried', async () => {
  respond = (res) => res.destroy()
  const error = await failureOf()
  expect(error).toBeInstanceOf(KubeError)
  expect(error).toMatchObject({ status: 0, reason: 'Unreachable', cause: { code: 'ECONNRESET' } })
  expect(received).toHaveLength(1)
})

test('an invalid response on a reused connection is not retried', async () => {
  respond = (res, nth) => (nth === 1 ? res.end() : res.socket?.end('no HTTP\r\n\r\n'))
  await send()
  expect(await failureOf()).toMatchObject({ status: 0, reason: 'Unreachable' })
  expect(received).toHaveLength(2)
})

test('an abort cancels the request, also while the response is read', async () => {
  const aborting = new AbortController()
  respond = (res) => {
    aborting.abort()
    setImmediate(() => res.destroy())
  }
  expect(await failureOf({ signal: aborting.signal })).toMatchObject({ reason: 'Unreachable' })
  const reading = new AbortController()
  respond = (res) => res.write('{')
  const { signal } = reading
  const { body } = await transport.send({ method: 'GET', path: '/x', signal })
  reading.abort()
  const bytes = async () => {
    for await (const chunk of body) expect(chunk.toString()).toBe('{')
  }
  await expect(bytes()).rejects.toHaveProperty('code')
  await waitFor('the connections to close', () => open.size === 0)
})

test('a connection that breaks during a response fails the reader of the body', async () => {
  respond = (res) => res.write('{', () => res.destroy())
  expect(await failureOf()).toMatchObject({ code: 'ECONNRESET' })
})

test('a close closes all connections, and is allowed before the first request', async () => {
  await send()
  await send({ isForCache: true })
  expect(open.size).toBe(2)
  transport.close()
  await waitFor('the connections to close', () => open.size === 0)
  const unused = { namespace: 'n', read: credentials, invalidate: () => undefined }
  expect(() => {
    createTransport(unused).close()
  }).not.toThrow()
})

test('an https address requires a certificate of the given CA and name', async () => {
  await new Promise((resolve) => server.close(resolve))
  const authority = createAuthority('test')
  const port = await start(createTlsServer(authority.issue(['api.test']), listener))
  const address = { server: `https://127.0.0.1:${port}`, headers: {} }
  const trusted = { ca: authority.cert, servername: 'api.test' }
  credentials = () => Promise.resolve({ ...address, tls: trusted })
  expect(await send()).toEqual([200, '{}'])
  credentials = () => Promise.resolve({ ...address, tls: { servername: 'api.test' } })
  expect(await failureOf()).toMatchObject({ status: 0, reason: 'Unreachable' })
  expect(received).toHaveLength(1)
})
