// What the public HTTP of the real standalone process refuses: methods, types, sizes, and bytes
// that are no request. Every answer is a problem document with a request id, as /openapi.json
// says.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, createAsk, openClient } from './client.ts'
import {
  type Answer,
  type Ask,
  headerOf,
  headersOf,
  jsonOf,
  openConnection,
  requestBytes,
} from './raw-http.ts'
import { type Standalone, startStandalone } from './standalone.ts'

const START_MS_MAX = 30_000
const BODY_BYTES_MAX = 16 * 1024
const HEADER_BYTES_MAX = 16 * 1024
const link = { long_url: 'https://example.com/' }

let service: Standalone
let client: Client

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
  await client.create({ ...link, custom_alias: 'there' })
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

const nameOf = (answer: Answer) => {
  const type = String(jsonOf(answer)['type'])
  expect(type.startsWith(`${service.linkBase}/problems/`)).toBe(true)
  return type.slice(`${service.linkBase}/problems/`.length)
}

const paths: Record<string, string> = {
  '/v1/urls': 'POST',
  '/v1/urls?x=1': 'POST',
  '/': 'GET, HEAD, POST',
  '/docs': 'GET, HEAD',
  '/openapi.json': 'GET, HEAD',
  '/problems/alias-taken': 'GET, HEAD',
  '/robots.txt': 'GET, HEAD',
  '/favicon.ico': 'GET, HEAD',
  '/assets/page.css': 'GET, HEAD',
  '/there': 'GET, HEAD',
  '/there?x': 'GET, HEAD',
  '/%74here': 'GET, HEAD',
  '/nowhere': 'GET, HEAD',
  'http://127.0.0.1/there': 'GET, HEAD',
}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']

describe('405 with Allow', () => {
  test.each(Object.entries(paths))('%s allows %s', async (path, allow) => {
    const allowed = allow.split(', ')
    for (const method of methods.filter((one) => !allowed.includes(one))) {
      const answer = await client.ask({ method, path })
      expect([method, answer.status, headerOf(answer, 'Allow')]).toEqual([method, 405, allow])
      if (method === 'HEAD') expect(answer.body).toHaveLength(0)
      else expect(nameOf(answer)).toBe('method-not-allowed')
    }
  })

  test('is not said of paths that are not there', async () => {
    for (const path of ['/there/', '/v1/urls/', '/%zz', '//', '*', '/12345678901']) {
      for (const method of ['POST', 'DELETE', 'OPTIONS']) {
        expect([path, (await client.ask({ method, path })).status]).toEqual([path, 404])
      }
    }
  })
})

describe('415 unsupported-media-type', () => {
  test.each([
    ...['', 'text/plain', 'application/jsonx', 'application/json-patch+json', 'application/*'],
    ...['application/problem+json', 'application/x-www-form-urlencoded', 'text/json', 'json'],
    ...['application/json,text/plain', 'application /json', 'multipart/form-data; boundary=x'],
  ])('Content-Type: %s', async (type) => {
    const answer = await client.create(link, { 'Content-Type': type })
    expect([answer.status, nameOf(answer)]).toEqual([415, 'unsupported-media-type'])
  })

  test('no Content-Type, with and without a body', async () => {
    for (const body of [JSON.stringify(link), '']) {
      const answer = await client.ask({ method: 'POST', path: '/v1/urls', body })
      expect(answer.status).toBe(415)
    }
    expect((await client.ask({ method: 'POST', path: '/v1/urls' })).status).toBe(415)
  })

  test.each(['gzip', 'br', 'deflate', 'x', 'identity, gzip', ''])(
    'Content-Encoding: %s',
    async (encoding) => {
      const answer = await client.create(link, { 'Content-Encoding': encoding })
      expect([answer.status, nameOf(answer)]).toEqual([415, 'unsupported-media-type'])
    },
  )
})

test.each(['gzip, chunked', 'deflate, chunked', 'GZIP,chunked'])(
  '415 unsupported-media-type of the API and the form: Transfer-Encoding: %s',
  async (coding) => {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    for (const [path, more] of [['/v1/urls', {}] as const, ['/', form] as const]) {
      const headers = { 'Transfer-Encoding': coding, ...more }
      const answer = await client.ask({ ...createAsk('0\r\n\r\n', headers), path })
      expect([path, answer.status, nameOf(answer)]).toEqual([path, 415, 'unsupported-media-type'])
      expect(jsonOf(answer)['detail']).toContain('Transfer-Encoding')
    }
  },
)

describe('413 body-too-large', () => {
  const over = JSON.stringify(link).padEnd(BODY_BYTES_MAX + 1)

  test('a byte over 16 KiB, and much more; then the connection ends', async () => {
    for (const body of [over, over.padEnd(1024 * 1024)]) {
      const connection = await openConnection(service.port)
      const answer = await connection.exchange(createAsk(body))
      expect([answer.status, nameOf(answer)]).toEqual([413, 'body-too-large'])
      expect(headerOf(answer, 'Connection')).toBe('close')
      await connection.ended
      connection.close()
    }
  })

  test('a byte over 16 KiB in chunks', async () => {
    const connection = await openConnection(service.port)
    const headers = { 'Transfer-Encoding': 'chunked' }
    connection.send(requestBytes(createAsk(Buffer.alloc(0), headers)))
    const chunk = '1000\r\n'.padEnd(0x1000 + 6) + '\r\n'
    for (const piece of [chunk, chunk, chunk, chunk, '1\r\n \r\n', '0\r\n\r\n']) {
      connection.send(piece)
    }
    const answer = await connection.answer()
    expect([answer.status, nameOf(answer)]).toEqual([413, 'body-too-large'])
    connection.close()
  })

  test('of another type it is 415, and GET with any body is a redirect', async () => {
    expect((await client.create(over, { 'Content-Type': 'text/plain' })).status).toBe(415)
    expect((await client.ask({ path: '/there', body: over })).status).toBe(302)
    expect((await client.ask({ path: '/there' })).status).toBe(302)
  })
})

describe('X-Request-Id', () => {
  const asks: Record<string, Ask> = {
    '201': createAsk(link),
    '302': { path: '/there' },
    '200': { path: '/' },
    '400': createAsk('{'),
    '404': { path: '/nowhere' },
    '404 deeper': { path: '/a/b' },
    '405': { path: '/v1/urls' },
    '409': createAsk({ ...link, custom_alias: 'there' }),
    '413': createAsk(' '.repeat(BODY_BYTES_MAX + 1)),
    '415': { method: 'POST', path: '/v1/urls' },
    '422': createAsk({}),
  }
  test.each(Object.entries(asks))('of %s is the request’s, or a new one', async (status, ask) => {
    const idOf = async (headers: Ask['headers']) => {
      const answer = await client.ask({ ...ask, headers: { ...ask.headers, ...headers } })
      expect(String(answer.status)).toBe(status.slice(0, 3))
      return headerOf(answer, 'X-Request-Id') ?? ''
    }
    for (const id of ['a', '!~', 'x'.repeat(128), '4bf92f35-77b3-4da6-a3ce-929d0e0e4736']) {
      expect(await idOf({ 'x-request-id': id })).toBe(id)
    }
    const made = new Set<string>()
    const bad = [[], '', 'two words', 'x'.repeat(129), 'caf\xe9', ['one', 'two']]
    for (const id of bad) {
      const fresh = await idOf({ 'X-Request-Id': id })
      expect(fresh).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/)
      made.add(fresh)
    }
    expect(made.size).toBe(bad.length)
  })
})

/** Sends bytes; takes the refusal, which must end the connection. */
async function refusalOf(bytes: string | Buffer): Promise<Answer> {
  const connection = await openConnection(service.port)
  connection.send(bytes)
  const answer = await connection.answer()
  expect(headerOf(answer, 'Content-Type')).toBe('application/problem+json')
  expect(headerOf(answer, 'Cache-Control')).toBe('no-store')
  expect(headerOf(answer, 'Connection')).toBe('close')
  expect(headerOf(answer, 'X-Request-Id')).toBe(jsonOf(answer)['request_id'])
  await connection.ended
  expect(connection.rest).toHaveLength(0)
  connection.close()
  return answer
}

const host = 'Host: x\r\n'
const post = `POST /v1/urls HTTP/1.1\r\n${host}Content-Type: application/json\r\n`
const malformed: Record<string, string | Buffer> = {
  'no HTTP at all': 'hello\r\n\r\n',
  'a TLS client': Buffer.from('16030100a5010000a10303', 'hex'),
  'HTTP/2 by prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an unknown version': `GET / HTTP/9.9\r\n${host}\r\n`,
  'an unknown method': `BREW / HTTP/1.1\r\n${host}\r\n`,
  'a method in small letters': `get / HTTP/1.1\r\n${host}\r\n`,
  'a target that is none': `GET there HTTP/1.1\r\n${host}\r\n`,
  'bytes over 127 in the target': `GET /caf\xc3\xa9 HTTP/1.1\r\n${host}\r\n`,
  'a NUL in the target': `GET /a\0b HTTP/1.1\r\n${host}\r\n`,
  'a space in a header’s name': `GET / HTTP/1.1\r\n${host}X Y: 1\r\n\r\n`,
  'a space before the colon': `GET / HTTP/1.1\r\nHost : x\r\n\r\n`,
  'a NUL in a header': `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`,
  'a header without colon': `GET / HTTP/1.1\r\n${host}nothing\r\n\r\n`,
  'a lone carriage return': `GET / HTTP/1.1\r\n${host}X: a\rb\r\n\r\n`,
  'both lengths': `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'two lengths': `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `,
  'a length below zero': `${post}Content-Length: -1\r\n\r\n`,
  'a length that is no number': `${post}Content-Length: 1e3\r\n\r\n`,
  'an unknown transfer coding': `${post}Transfer-Encoding: chunked, gzip\r\n\r\n`,
  'a chunk of no size': `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
  'a chunk longer than it says': `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n`,
}

describe('what is no request', () => {
  test.each(Object.entries(malformed))('400 bad-request: %s', async (_, bytes) => {
    const answer = await refusalOf(bytes)
    expect([answer.status, nameOf(answer)]).toEqual([400, 'bad-request'])
  })

  test('400 bad-request: no Host in HTTP/1.1', async () => {
    const answer = await client.ask({ path: '/there', headers: { Host: [] } })
    expect([answer.status, nameOf(answer)]).toEqual([400, 'bad-request'])
  })

  test.each([
    ['one large header', `X-Large: ${'x'.repeat(HEADER_BYTES_MAX)}\r\n`],
    ['many headers', 'X-Many: 1\r\n'.repeat(HEADER_BYTES_MAX / 8)],
  ])('431 headers-too-large: %s', async (_, headers) => {
    const answer = await refusalOf(`GET /there HTTP/1.1\r\n${host}${headers}\r\n`)
    expect([answer.status, nameOf(answer)]).toEqual([431, 'headers-too-large'])
  })

  test('431 headers-too-large: a long target; a little less is looked at', async () => {
    const targetOf = (length: number) => `/there?${'x'.repeat(length)}`
    const long = `GET ${targetOf(HEADER_BYTES_MAX)} HTTP/1.1\r\n${host}\r\n`
    expect((await refusalOf(long)).status).toBe(431)
    const answer = await client.ask({ path: targetOf(HEADER_BYTES_MAX - 500) })
    expect(answer.status).toBe(302)
  })

  test('the answer to a request before it on the connection is whole', async () => {
    const connection = await openConnection(service.port)
    connection.send(
      Buffer.concat([requestBytes({ path: '/there' }), Buffer.from('nonsense\r\n\r\n')]),
    )
    expect((await connection.answer()).status).toBe(302)
    await connection.ended
    connection.close()
  })

  test('CONNECT ends the connection', async () => {
    const connection = await openConnection(service.port)
    connection.send(`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`)
    await connection.ended
    connection.close()
  })
})

test('no answer tells what software made it', async () => {
  for (const path of ['/', '/there', '/nowhere', '/v1/urls', '/docs', '/openapi.json']) {
    const answer = await client.ask({ path })
    expect([...headersOf(answer, 'Server'), ...headersOf(answer, 'X-Powered-By')]).toEqual([])
  }
})
