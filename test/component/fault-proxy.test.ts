// The proxy that plays a bad network: order, late answers, lost ones, silence, refusal and an end
// are what they say, and what it holds is bounded.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type FaultProxy, startFaultProxy } from '../parts/fault-proxy.ts'
import { inTime, waitFor } from './wait-for.ts'

/** An echo that answers each message of 4 bytes by the same. */
let part: Server
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
  part = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString()
      socket.write(chunk)
    })
  })
  part.listen(0, '127.0.0.1')
  await once(part, 'listening')
})

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy()
  await proxy.close()
  part.close()
})

async function start(messageLength?: () => number): Promise<void> {
  const to = { host: '127.0.0.1', port: (part.address() as AddressInfo).port }
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
  await inTime('the connection', once(socket, 'connect'))
  return client
}

const gets = (client: Client, text: string) =>
  waitFor(`${text} to come back`, () => client.got === text)

test('a delayed answer comes late, and none overtakes it when the delay ends', async () => {
  await start()
  const client = await open()
  proxy.delay(300)
  const sentMs = performance.now()
  client.socket.write('late')
  await waitFor('the request', () => received === 'late')
  proxy.delay(0)
  client.socket.write('soon')
  await gets(client, 'latesoon')
  expect(performance.now() - sentMs).toBeGreaterThan(290)
})

test('a lost message does not harm its connection, and only such are lost', async () => {
  await start(() => 4)
  const client = await open()
  const isSuch = (message: Buffer) => message.toString().startsWith('x')
  proxy.swallow({ answers: 2, isSuch })
  client.socket.write('a---x--1b---x--2x--3')
  await gets(client, 'a---b---x--3')
  expect([received, proxy.swallowed()]).toEqual(['a---x--1b---x--2x--3', 2])
})

test('where messages are not known the rest of a stream is lost, and healing cuts it', async () => {
  await start()
  const [client, other] = [await open(), await open()]
  other.socket.write('idle')
  await gets(other, 'idle')
  proxy.swallow({ answers: 1 })
  client.socket.write('lost')
  await waitFor('the loss', () => proxy.swallowed() === 1)
  client.socket.write('more')
  await waitFor('the request', () => received === 'idlelostmore')
  other.socket.write('good')
  await gets(other, 'idlegood')
  expect(client.got).toBe('')
  await proxy.heal()
  await waitFor('the cut', () => client.end !== undefined)
  expect([client.got, other.end]).toEqual(['', undefined])
})

test('a black hole is silent to old and new connections; healed, all of it arrives', async () => {
  await start()
  const old = await open()
  proxy.blackHole()
  const late = await open()
  old.socket.write('1111')
  late.socket.write('2222')
  await inTime('a moment without an answer', new Promise((resolve) => setTimeout(resolve, 100)))
  expect([received, old.got, late.got]).toEqual(['', '', ''])
  await proxy.heal()
  await gets(old, '1111')
  await gets(late, '2222')
})

test('who refuses resets what is open and takes nothing new, until it is healed', async () => {
  await start()
  const client = await open()
  await proxy.refuse()
  await waitFor('the reset', () => client.end !== undefined)
  expect(client.end).toMatch(/ECONNRESET/)
  await expect(open()).rejects.toThrow(/ECONNREFUSED/)
  await proxy.heal()
  const again = await open()
  again.socket.write('back')
  await gets(again, 'back')
})

test('cut connections are reset, and the next one works', async () => {
  await start()
  const client = await open()
  proxy.cut()
  await waitFor('the reset', () => client.end !== undefined)
  const next = await open()
  next.socket.write('next')
  await gets(next, 'next')
})

test('it stops reading while it holds much, and loses nothing of it', async () => {
  await start()
  const client = await open()
  proxy.blackHole()
  const bytes = 32 * 1024 * 1024
  let sent = 0
  client.socket.write(Buffer.alloc(bytes, 'a'), () => {
    sent = bytes
  })
  // What was not taken from this socket is in the client's own buffer.
  const isHeld = () => client.socket.bytesWritten < bytes || sent < bytes
  await inTime('a moment', new Promise((resolve) => setTimeout(resolve, 300)))
  expect(isHeld()).toBe(true)
  expect(received.length).toBeLessThan(8 * 1024 * 1024)
  await proxy.heal()
  await waitFor('all of it', () => client.got.length === bytes)
}, 30_000) // 32 MiB there and back, on a machine that may be busy

test('an end of the client reaches the part, and its last answer the client', async () => {
  await start()
  const client = await open()
  proxy.delay(50)
  client.socket.end('last')
  await gets(client, 'last')
  await waitFor('the end', () => client.end === 'end')
})
