// After the last response a bounded number of bytes is read, and the connection of a client that
// closes it is released immediately, not after the time for discarding.
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { lingeringClose } from './lingering-close.ts'

test('after the last response, the server detects that the client has closed', async () => {
  const server = createServer((_, res) => res.end('x'))
  const events: string[] = []
  const connected = once(server, 'connection').then(async ([socket]) => {
    if (!(socket instanceof Socket)) throw new Error('no socket')
    socket.destroySoon = () => {
      lingeringClose(socket)
    }
    socket.once('end', () => events.push('end'))
    await once(socket, 'close')
    events.push('close')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const headers = { connection: 'close' }
  get({ host: '127.0.0.1', port, agent: false, headers }, (response) => response.resume())
  await connected
  server.close()
  expect(events).toEqual(['end', 'close'])
})

test('of an endless body, nothing is read until the response is sent, then 64 KiB', async () => {
  const chunk = Buffer.alloc(4096)
  let readBytes = 0
  let confirmSent: () => void = () => undefined
  const socket: Duplex = new Duplex({
    readableHighWaterMark: chunk.length, // a paused socket reads nothing ahead
    read() {
      setImmediate(() => {
        if (socket.destroyed) return
        readBytes += chunk.length
        socket.push(chunk)
      })
    },
    write(_response, _encoding, written) {
      confirmSent = written
    },
  })
  socket.on('data', () => undefined) // the parser's
  while (readBytes === 0) await turn()
  const parsedBytes = readBytes
  socket.write('response')
  lingeringClose(socket)
  for (let turns = 0; turns < 100; turns++) await turn()
  expect(readBytes - parsedBytes).toBeLessThanOrEqual(chunk.length) // the read that was in flight
  confirmSent()
  await once(socket, 'close')
  expect(readBytes - parsedBytes).toBe(64 * 1024)
})
