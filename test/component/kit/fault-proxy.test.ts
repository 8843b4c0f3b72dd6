// The fault proxy: delayed and dropped responses, black holes, reset and refused connections, and
// bounded buffers.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../../kit/fault-proxy.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

/** An echo server for messages of 4 bytes. */
let server: Server
let proxy: FaultProxy
let received = ''
const clients: Client[] = []

interface Client {
  readonly socket: Socket
  received: string
  /** The error that closed the connection, or `closed`; undefined while it is open. */
  outcome: string | undefined
}

beforeEach(async () => {
  received = ''
  server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString()
      socket.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  await proxy.close()
  server.close()
})

async function start(messageLength?: () => number): Promise<void> {
  const to = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  proxy = await startFaultProxy({ to, ...(messageLength !== undefined && { messageLength }) })
}

async function open(): Promise<Client> {
  const socket = connect({ host: proxy.host, port: proxy.port, noDelay: true })
  const client: Client = { socket, received: '', outcome: undefined }
  clients.push(client)
  socket.on('data', (chunk: Buffer) => {
    client.received += chunk.toString()
  })
  socket.on('error', ({ message }) => {
    client.outcome ??= message
  })
  socket.on('close', () => {
    client.outcome ??= 'closed'
  })
  await withinDeadline('the connection', once(socket, 'connect'))
  return client
}

const expectEcho = (client: Client, bytes: string) =>
  waitFor(`the echo of ${bytes}`, () => client.received === bytes)

test('the proxy keeps the order of responses when it removes a delay', async () => {
  await start()
  const client = await open()
  proxy.delay(300)
  let hasResponse = false
  proxy.dropResponses({
    matches: () => {
      hasResponse = true // and its delay is chosen in the same turn of the event loop
      return false
    },
  })
  const sentMs = performance.now()
  client.socket.write('slow')
  await waitFor('the response at the proxy', () => hasResponse)
  proxy.delay(0)
  client.socket.write('soon')
  await expectEcho(client, 'slowsoon')
  expect(performance.now() - sentMs).toBeGreaterThan(290)
})

test('dropResponses() drops only matching messages; their connection stays usable', async () => {
  await start(() => 4)
  const client = await open()
  const matches = (message: Buffer) => message.toString().startsWith('x')
  proxy.dropResponses({ count: 2, matches })
  client.socket.write('a---x--1b---x--2x--3')
  await expectEcho(client, 'a---b---x--3')
  expect([received, proxy.droppedResponses()]).toEqual(['a---x--1b---x--2x--3', 2])
})

test('dropResponses() without message boundaries drops the rest until heal()', async () => {
  await start()
  const [client, other] = [await open(), await open()]
  other.socket.write('idle')
  await expectEcho(other, 'idle')
  proxy.dropResponses({ count: 1 })
  client.socket.write('lost')
  await waitFor('the drop', () => proxy.droppedResponses() === 1)
  client.socket.write('more')
  await waitFor('the request', () => received === 'idlelostmore')
  other.socket.write('good')
  await expectEcho(other, 'idlegood')
  expect(client.received).toBe('')
  await proxy.heal()
  await waitFor('the reset', () => client.outcome !== undefined)
  expect([client.received, other.outcome]).toEqual(['', undefined])
})

test('blackHole() buffers the bytes of all connections, and heal() delivers them', async () => {
  await start()
  const old = await open()
  proxy.blackHole()
  const held = await open()
  old.socket.write('1111')
  held.socket.write('2222')
  await withinDeadline(
    '100 ms without a response',
    new Promise((resolve) => setTimeout(resolve, 100)),
  )
  expect([received, old.received, held.received]).toEqual(['', '', ''])
  await proxy.heal()
  await expectEcho(old, '1111')
  await expectEcho(held, '2222')
})

test('stopListening() resets connections and refuses new connections until heal()', async () => {
  await start()
  const client = await open()
  await proxy.stopListening()
  await waitFor('the reset', () => client.outcome !== undefined)
  expect(client.outcome).toMatch(/ECONNRESET/)
  await expect(open()).rejects.toThrow(/ECONNREFUSED/)
  await proxy.heal()
  const next = await open()
  next.socket.write('next')
  await expectEcho(next, 'next')
})

test('resetConnections() resets open connections, and accepts new ones', async () => {
  await start()
  const client = await open()
  proxy.resetConnections()
  await waitFor('the reset', () => client.outcome !== undefined)
  const next = await open()
  next.socket.write('next')
  await expectEcho(next, 'next')
})

test('the proxy stops reading at its buffer limit, and loses no byte', async () => {
  await start()
  const client = await open()
  proxy.blackHole()
  const bytes = 32 * 1024 * 1024
  let sent = 0
  client.socket.write(Buffer.alloc(bytes, 'a'), () => {
    sent = bytes
  })
  // Bytes that the proxy has not read are in the buffer of the client.
  const isBlocked = () => client.socket.bytesWritten < bytes || sent < bytes
  await withinDeadline('300 ms', new Promise((resolve) => setTimeout(resolve, 300)))
  expect(isBlocked()).toBe(true)
  expect(received.length).toBeLessThan(8 * 1024 * 1024)
  await proxy.heal()
  await waitFor('all of it', () => client.received.length === bytes)
}, 30_000) // echoes 32 MiB, on a possibly busy machine

test('the proxy delivers the last response after a half-close of the client', async () => {
  await start()
  const client = await open()
  proxy.delay(50)
  client.socket.end('last')
  await expectEcho(client, 'last')
  await waitFor('the close', () => client.outcome === 'closed')
})
