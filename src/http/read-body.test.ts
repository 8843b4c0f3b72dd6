// Requests with and without a body on one connection of a listener. Without headers of a body there
// is nothing to wait for: the request is complete before its handler starts.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { bareApp } from './bare-app.ts'
import { readBody } from './read-body.ts'
import { type Listener, listen } from './serve.ts'

let listener: Listener

beforeAll(async () => {
  const onError = () => undefined
  listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError })
  const app = bareApp()
  app.use((req, res, next) => {
    const start = req.readableEnded ? 'complete' : 'incomplete'
    readBody(req, res).then((body) => res.end(`${start}: ${body.toString()}.`), next)
  })
  listener.attach({ baseUrl: '', app })
})

afterAll(() => listener.drain(0))

/** The body of each response; the last request closes the connection. */
async function exchange(requests: readonly string[]): Promise<string[]> {
  const socket = connect({ port: listener.port, host: '127.0.0.1' }).setEncoding('latin1')
  let received = ''
  socket.on('data', (chunk) => (received += String(chunk)))
  socket.write(requests.join(''))
  await once(socket, 'close', { signal: AbortSignal.timeout(5000) })
  return received.match(/(?:in)?complete: [^.]*\./g) ?? []
}

test('a request without headers of a body is complete, and its body is empty', async () => {
  const start = '/ HTTP/1.1\r\nHost: h\r\n'
  const requests = [
    `GET ${start}\r\n`,
    `POST ${start}\r\n`,
    `POST ${start}Expect: 100-continue\r\n\r\n`,
    `POST ${start}Content-Length: 0\r\n\r\n`,
    `POST ${start}Content-Length: 3\r\n\r\nabc`,
    `HEAD ${start}\r\n`,
    `POST ${start}Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n`,
    `POST ${start}Connection: close\r\n\r\n`,
  ]
  expect(await exchange(requests)).toEqual([
    ...['complete: .', 'complete: .', 'complete: .'],
    ...['incomplete: .', 'incomplete: abc.', 'incomplete: de.', 'complete: .'],
  ])
})
