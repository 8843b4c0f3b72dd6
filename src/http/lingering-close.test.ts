// The connection of a client that closes it is released at once, not after the time for discarding.
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { lingeringClose } from './lingering-close.ts'

test('after the last response, the server reads that the client has closed', async () => {
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
