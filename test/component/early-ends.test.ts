// Connections that end, or go wrong, behind a request that came whole: the request is answered all
// the same, and nothing else is said in its place.
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createAsk } from './client.ts'
import { headerOf, openConnection, requestBytes } from './raw-http.ts'
import { type Standalone, startStandalone } from './standalone.ts'
import { inTime } from './wait-for.ts'

const TEST_MS_MAX = 60_000
let service: Standalone

beforeAll(async () => {
  service = await startStandalone()
}, TEST_MS_MAX)

afterAll(async () => {
  await service.stop()
}, TEST_MS_MAX)

const createBytes = (alias: string) =>
  requestBytes(createAsk({ long_url: 'https://example.com/', custom_alias: alias }))

const surplus = {
  'one byte': 'X',
  'what is no request': 'nonsense\r\n\r\n',
  'a head that is too large': `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
}

describe.each(Object.entries(surplus))('behind a create comes %s', (name, bytes) => {
  test('the create is answered, for it is stored; then the connection ends', async () => {
    const alias = `s${String(Object.keys(surplus).indexOf(name))}`
    const connection = await openConnection(service.port)
    connection.send(Buffer.concat([createBytes(alias), Buffer.from(bytes)]))
    expect((await connection.answer()).status).toBe(201)
    await inTime('the end', connection.ended)
    connection.close()
  })
})

test('two creates before what is no request are both answered, in their order', async () => {
  const connection = await openConnection(service.port)
  const bytes = [createBytes('first'), createBytes('second'), Buffer.from('nonsense\r\n\r\n')]
  connection.send(Buffer.concat(bytes))
  for (const alias of ['first', 'second']) {
    const answer = await connection.answer()
    expect([answer.status, headerOf(answer, 'Location')]).toEqual([
      201,
      `${service.linkBase}/${alias}`,
    ])
  }
  await inTime('the end', connection.ended)
  connection.close()
})

test('a client that closes its half after its request is answered', async () => {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true })
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString()
  })
  const ended = new Promise<void>((resolve) => {
    socket.on('end', () => {
      resolve()
    })
  })
  socket.end(createBytes('half'))
  await inTime('the end', ended)
  expect(received).toMatch(/^HTTP\/1\.1 201 /)
  socket.destroy()
})

test('CONNECT is refused with a document', async () => {
  const connection = await openConnection(service.port)
  connection.send('CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n')
  const answer = await connection.answer()
  expect(answer.status).toBe(400)
  expect(headerOf(answer, 'X-Request-Id')).toBeDefined()
  await inTime('the end', connection.ended)
  connection.close()
})

test(
  'SIGTERM does not wait for connections that never said a word',
  async () => {
    const other = await startStandalone()
    const silent = await openConnection(other.port)
    other.child.kill('SIGTERM')
    expect(await inTime('the end', other.ended, 5000)).toBe(0)
    silent.close()
    await other.stop()
  },
  TEST_MS_MAX,
)
