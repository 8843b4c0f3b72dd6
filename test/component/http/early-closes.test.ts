// Connections that close or fail after a complete request: the request still gets its response.
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createLinkRequest } from '../../kit/http/client.ts'
import { headerOf, openConnection, requestBytes } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
let service: Standalone

beforeAll(async () => {
  service = await startStandalone()
}, TEST_MS_MAX)

afterAll(async () => {
  await service.stop()
}, TEST_MS_MAX)

const createBytes = (alias: string) =>
  requestBytes(createLinkRequest({ long_url: 'https://example.com/', custom_alias: alias }))

const trailingBytes = {
  'one byte': 'X',
  'an invalid request': 'nonsense\r\n\r\n',
  'headers that are too large': `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
}

describe.each(Object.entries(trailingBytes))('a create that precedes %s', (name, bytes) => {
  test('gets its 201, because it is stored; then the connection closes', async () => {
    const alias = `s${String(Object.keys(trailingBytes).indexOf(name))}`
    const connection = await openConnection(service.port)
    connection.send(Buffer.concat([createBytes(alias), Buffer.from(bytes)]))
    expect((await connection.nextResponse()).status).toBe(201)
    await withinDeadline('the close', connection.closed)
    connection.close()
  })
})

test('two creates that precede an invalid request get their responses in order', async () => {
  const connection = await openConnection(service.port)
  const bytes = [createBytes('first'), createBytes('second'), Buffer.from('nonsense\r\n\r\n')]
  connection.send(Buffer.concat(bytes))
  for (const alias of ['first', 'second']) {
    const response = await connection.nextResponse()
    expect([response.status, headerOf(response, 'Location')]).toEqual([
      201,
      `${service.linkBase}/${alias}`,
    ])
  }
  await withinDeadline('the close', connection.closed)
  connection.close()
})

test('a client that half-closes after its request gets its response', async () => {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true })
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString()
  })
  const closed = new Promise<void>((resolve) => {
    socket.on('end', () => {
      resolve()
    })
  })
  socket.end(createBytes('half'))
  await withinDeadline('the close', closed)
  expect(received).toMatch(/^HTTP\/1\.1 201 /)
  socket.destroy()
})

test('CONNECT gets 400 with a request id, and the connection closes', async () => {
  const connection = await openConnection(service.port)
  connection.send('CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n')
  const response = await connection.nextResponse()
  expect(response.status).toBe(400)
  expect(headerOf(response, 'X-Request-Id')).toBeDefined()
  await withinDeadline('the close', connection.closed)
  connection.close()
})

test(
  'a process stops on SIGTERM without waiting for connections that have sent no byte',
  async () => {
    const other = await startStandalone()
    const silent = await openConnection(other.port)
    other.child.kill('SIGTERM')
    expect(await withinDeadline('the exit', other.exited, 5000)).toBe(0)
    silent.close()
    await other.stop()
  },
  TEST_MS_MAX,
)
