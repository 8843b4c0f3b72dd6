// The fault proxy: order, delayed and lost responses, black holes, refused and closed connections,
// and bounded buffers.
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
  got: string
  end: string | undefined
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
  const client: Client = { socket, got: '', end: undefined }
  clients.push(client)
  socket.on('data', (chunk: Buffer) => {
    client.got += chunk.toString()
  })
  socket.on('error', ({ message }) => {
    client.end ??= message
  })
  socket.on('close', () => {
    client.end ??= 'end'
  })
  await withinDeadline('the connection', once(socket, 'connect'))
  return client
}

const receives = (client: Client, text: string) =>
  waitFor(`the echo of ${text}`, () => client.got === text)

test('a delayed response keeps its place in the order after the delay is removed', async () => {
  await start()
  const client = await open()
  proxy.delay(300)
  const sentMs = performance.now()
  client.socket.write('late')
  await waitFor('the request', () => received === 'late')
  proxy.delay(0)
  client.socket.write('soon')
  await receives(client, 'latesoon')
  expect(performance.now() - sentMs).toBeGreaterThan(290)
})

test('only selected messages are lost, and their connection stays usable', async () => {
  await start(() => 4)
  const client = await open()
  const isSuch = (message: Buffer) => message.toString().startsWith('x')
  proxy.dropResponses({ answers: 2, isSuch })
  client.socket.write('a---x--1b---x--2x--3')
  await receives(client, 'a---b---x--3')
  expect([received, proxy.droppedResponses()]).toEqual(['a---x--1b---x--2x--3', 2])
})

test('without message boundaries the rest of a stream is lost; heal() resets it', async () => {
  await start()
  const [client, other] = [await open(), await open()]
  other.socket.write('idle')
  await receives(other, 'idle')
  proxy.dropResponses({ answers: 1 })
  client.socket.write('lost')
  await waitFor('the loss', () => proxy.droppedResponses() === 1)
  client.socket.write('more')
  await waitFor('the request', () => received === 'idlelostmore')
  other.socket.write('good')
  await receives(other, 'idlegood')
  expect(client.got).toBe('')
  await proxy.heal()
  await waitFor('the reset', () => client.end !== undefined)
  expect([client.got, other.end]).toEqual(['', undefined])
})

test('a black hole holds the bytes of all connections; after heal() they arrive', async () => {
  await start()
  const old = await open()
  proxy.blackHole()
  const held = await open()
  old.socket.write('1111')
  held.socket.write('2222')
  await withinDeadline(
    'a moment without a response',
    new Promise((resolve) => setTimeout(resolve, 100)),
  )
  expect([received, old.got, held.got]).toEqual(['', '', ''])
  await proxy.heal()
  await receives(old, '1111')
  await receives(held, '2222')
})

test('refuse() resets open connections and refuses new ones, until heal()', async () => {
  await start()
  const client = await open()
  await proxy.refuse()
  await waitFor('the reset', () => client.end !== undefined)
  expect(client.end).toMatch(/ECONNRESET/)
  await expect(open()).rejects.toThrow(/ECONNREFUSED/)
  await proxy.heal()
  const next = await open()
  next.socket.write('back')
  await receives(next, 'back')
})

test('cut() resets open connections, and the next one works', async () => {
  await start()
  const client = await open()
  proxy.cut()
  await waitFor('the reset', () => client.end !== undefined)
  const next = await open()
  next.socket.write('next')
  await receives(next, 'next')
})

test('it stops reading at its buffer bound, and loses no byte', async () => {
  await start()
  const client = await open()
  proxy.blackHole()
  const bytes = 32 * 1024 * 1024
  let sent = 0
  client.socket.write(Buffer.alloc(bytes, 'a'), () => {
    sent = bytes
  })
  // Bytes that the proxy has not read are in the client's own buffer.
  const isHeld = () => client.socket.bytesWritten < bytes || sent < bytes
  await withinDeadline('a moment', new Promise((resolve) => setTimeout(resolve, 300)))
  expect(isHeld()).toBe(true)
  expect(received.length).toBeLessThan(8 * 1024 * 1024)
  await proxy.heal()
  await waitFor('all of it', () => client.got.length === bytes)
}, 30_000) // echoes 32 MiB, on a machine that may be busy

test('after a half-close of the client the last response still arrives', async () => {
  await start()
  const client = await open()
  proxy.delay(50)
  client.socket.end('last')
  await receives(client, 'last')
  await waitFor('the close', () => client.end === 'end')
})
