// The bounds of the controller's xDS server: clients that do not read, send garbage or too much, or
// open too many connections and calls; and TLS with renewed certificates.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import {
  ADS_METHOD,
  type DiscoveryRequest,
  readDiscoveryResponse,
  writeDiscoveryRequest,
} from '../../../src/protobuf/discovery.ts'
import {
  type AdsTestClient,
  type ControllerAdsServer,
  openAdsTestClient,
  startControllerAdsServer,
} from '../../kit/ratelimit/controller-ads-server.ts'
import { createRandom } from '../../kit/random.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { frame, headersOn, opening, uint32 } from '../../kit/ratelimit/grpc-frames.ts'
import { shopConfig } from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL } from '../../kit/ratelimit/xds-messages.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

/** Of tests that wait for it; far longer than this process stalls. */
const KEEPALIVE_MS = 1500
const END_HEADERS = 4
const cleanups: (() => unknown)[] = []
let server: ControllerAdsServer

/** Starts the server of the test, and closes it after the test. */
async function start(options: Parameters<typeof startControllerAdsServer>[0]): Promise<void> {
  const started = await startControllerAdsServer(options)
  cleanups.push(() => started.close())
  server = started
}

beforeEach(() => start({}))
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

function open(options?: Parameters<typeof openAdsTestClient>[1]): AdsTestClient {
  const client = openAdsTestClient(server.port, options)
  cleanups.push(() => {
    client.close()
  })
  return client
}

/** Opens a raw connection, which reads. */
function openSocket(localAddress = '127.0.0.1'): { socket: Socket; closed: Promise<unknown> } {
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress })
  cleanups.push(() => socket.destroy())
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => undefined).resume() // 'close' follows
  return { socket, closed }
}

const adsHeaders = { ':method': 'POST', ':path': ADS_METHOD, 'content-type': 'application/grpc' }
const subscription = {
  node: undefined,
  version: '',
  typeUrl: CONFIG_TYPE_URL,
  nonce: '',
  error: undefined,
}

/** A gRPC message with its prefix. */
function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

const faultOf = (reason: string, count = 1) =>
  waitFor(`a fault ${reason}`, async () => ((await server.faults())[reason] ?? 0) >= count)

/** A call on a raw HTTP/2 connection that does not read until `resume`. */
function openSlow() {
  const session = connectHttp2(`http://127.0.0.1:${server.port}`, {
    peerMaxConcurrentStreams: 1000,
  })
  cleanups.push(() => {
    session.destroy()
  })
  session.on('error', () => undefined) // 'close' of the stream follows
  const stream = session.request(adsHeaders, { endStream: false })
  stream.on('error', () => undefined).pause() // 'close' follows
  const send = (request: Partial<DiscoveryRequest>) => {
    stream.write(framed(writeDiscoveryRequest({ ...subscription, ...request })))
  }
  send({})
  return { session, stream, send }
}

test('a client that does not read is disconnected; others get each version meanwhile', async () => {
  await start({ keepaliveMs: KEEPALIVE_MS })
  const others = [open(), open()]
  const slow = openSlow()
  const closed = new Promise((resolve) => slow.stream.on('close', resolve))
  await server.active('', '', '')
  for (const version of ['a', 'b', 'c']) {
    server.publishBytes(version, Buffer.alloc(1_000_000))
    await waitFor(version, () => others.every(({ versions }) => versions.at(-1) === version))
  }
  slow.send({ nonce: 'guessed', version: 'a' })
  await withinDeadline('the close', closed, 5 * 2 * KEEPALIVE_MS)
  await server.active('c', 'c')
  expect(await server.faults()).toMatchObject({ timeout: 1 })
})

test('a client that reads slowly gets the version in flight, then the newest one', async () => {
  const slow = openSlow()
  await server.active('')
  for (const version of ['a', 'b', 'c']) server.publishBytes(version, Buffer.alloc(1_000_000))
  const versions: string[] = []
  let received = Buffer.alloc(0)
  slow.stream.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length < 5 || received.length < 5 + received.readUInt32BE(1)) return
    const { version, nonce } = readDiscoveryResponse(received.subarray(5))
    versions.push(version)
    slow.send({ version, nonce })
    received = Buffer.alloc(0)
  })
  slow.stream.resume()
  await server.active('c')
  expect(versions).toEqual(['a', 'c'])
})

test.each([
  ['a call of another method', '/other/Method', '', 'StreamAggregatedResources'],
  ['a huge request', ADS_METHOD, 'x'.repeat(70_000), 'fewer than 65536 bytes'],
])('%s is rejected', async (...[, method, error, details]) => {
  const client = open({ method, accepts: false })
  client.send({ error })
  await waitFor('the status', () => client.closed.length === 1)
  expect(client.closed[0]).toContain(details)
  expect(await server.faults()).toMatchObject({ protocol: 1 })
})

test.each([
  ['garbage', Buffer.alloc(1000, 7)],
  ['HTTP/1', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
  ['TLS without a certificate of the server', Buffer.from('160301020001000001fc0303', 'hex')],
])('a connection with %s is closed', async (_, bytes) => {
  const { socket, closed } = openSocket()
  socket.write(bytes)
  await withinDeadline('the close', closed)
  await faultOf('protocol')
})

/** A subscription on stream 1, with each header as a literal. */
const validFrames = Buffer.concat([
  opening,
  headersOn(
    1,
    END_HEADERS,
    Buffer.concat(
      Object.entries({ ':scheme': 'http', ':authority': 'x', ...adsHeaders }).flatMap(
        ([name, value]) => [
          Buffer.from([0, name.length]),
          Buffer.from(name),
          Buffer.from([value.length]),
          Buffer.from(value),
        ],
      ),
    ),
  ),
  frame({ type: 0 }, 1, framed(writeDiscoveryRequest(subscription))),
])

test('no sequence of frames stops the server', async () => {
  await start({ keepaliveMs: KEEPALIVE_MS })
  const random = createRandom(1)
  const reset = frame({ type: 3 }, 1, uint32(constants.NGHTTP2_CANCEL))
  openSocket().socket.write(validFrames)
  await server.active('')
  server.publish('a', shopConfig())
  const sent = Array.from({ length: 200 }, (_, i) => {
    const bytes = Buffer.from(validFrames)
    for (let changes = random.int(4); changes > 0; changes -= 1) {
      bytes[opening.length + random.int(bytes.length - opening.length)] = random.int(256)
    }
    const { socket, closed } = openSocket()
    socket.end(i % 2 === 0 ? bytes : Buffer.concat([bytes, reset]))
    return closed
  })
  await withinDeadline('the close', Promise.all(sent))
  open()
  await server.active('a')
  expect((await server.faults())['protocol']).toBeGreaterThan(10)
})

test('a connection has one call at a time', async () => {
  const { session, stream } = openSlow()
  let rejected = 0
  for (let i = 0; i < 999; i += 1) {
    const other = session.request(adsHeaders, { endStream: false })
    other.on('error', () => undefined) // 'close' follows
    other.on(
      'close',
      () => (rejected += Number(other.rstCode === constants.NGHTTP2_REFUSED_STREAM)),
    )
  }
  await waitFor('the rejected calls', () => rejected > 900)
  expect(stream.closed).toBe(false)
  await server.active('')
})

test('incomplete requests of one address are bounded; others are not rejected', async () => {
  const incomplete = framed(Buffer.alloc(60_000)).subarray(0, -1)
  const openIncomplete = (localAddress: string) => {
    const createConnection = () => openSocket(localAddress).socket
    const session = connectHttp2(`http://127.0.0.1:${server.port}`, { createConnection })
    session.on('error', () => undefined) // 'close' of the stream follows
    const stream = session.request(adsHeaders, { endStream: false })
    stream.on('error', () => undefined).resume() // 'close' follows
    stream.write(incomplete)
    return stream
  }
  const streams = Array.from({ length: 150 }, () => openIncomplete('127.0.0.2'))
  await faultOf('abuse', streams.length - 64)
  const honest = openIncomplete('127.0.0.1')
  honest.write(framed(Buffer.alloc(60_000)).subarray(-1))
  open()
  await server.active('')
  expect(honest.closed).toBe(false)
})

test('an address has at most half of the connections', async () => {
  for (let i = 0; i < 300; i += 1) openSocket('127.0.0.2')
  await faultOf('connections', 50)
  open()
  await server.active('')
  expect(await server.faults()).toMatchObject({ connections: 50 })
})

test('limiters need a certificate of the CA; renewed files are used', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'curtail-ads-tls-'))
  cleanups.push(() => {
    rmSync(folder, { recursive: true })
  })
  const [servers, clients, others] = ['servers', 'clients', 'others'].map(createAuthority)
  if (!servers || !clients || !others) throw new Error('no CA')
  const issued = servers.issue(['xds.example'])
  const tls = {
    certificate: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    authorities: join(folder, 'ca.crt'),
  }
  writeFileSync(tls.certificate, issued.cert)
  writeFileSync(tls.key, issued.key)
  writeFileSync(tls.authorities, clients.cert)
  await start({ tls })
  const openWith = (authority?: typeof clients) => {
    const { key, cert } = authority?.issue(['limiter']) ?? {}
    const pem = (own?: string) => (own === undefined ? null : Buffer.from(own))
    const ca = Buffer.from(servers.cert)
    return open({ credentials: grpc.credentials.createSsl(ca, pem(key), pem(cert)) })
  }
  openWith(clients)
  await server.active('')
  openWith(others)
  await faultOf('tls')
  openWith()
  await faultOf('tls', 2)
  open()
  await faultOf('tls', 3)
  expect(server.replicas()).toHaveLength(1)
  writeFileSync(tls.authorities, others.cert)
  await waitFor('the renewed CA', async () => {
    openWith(others)
    await new Promise((resolve) => setTimeout(resolve, 100))
    return server.replicas().length > 1
  })
})
