// The requests that the public port of the real standalone process rejects: methods, media types,
// sizes and malformed HTTP. Every response is a problem document, as in /openapi.json.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, createLinkRequest, openClient } from '../../kit/http/client.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  headersOf,
  jsonOf,
  openConnection,
  requestBytes,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const BODY_BYTES_MAX = 16 * 1024
const HEADER_BYTES_MAX = 16 * 1024
const link = { long_url: 'https://example.com/' }

let service: Standalone
let client: Client

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
  await client.create({ ...link, custom_alias: 'found' })
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

const nameOf = (response: RawResponse) => {
  const type = String(jsonOf(response)['type'])
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
  '/found.svg': 'GET, HEAD',
  '/found': 'GET, HEAD',
  '/found?x': 'GET, HEAD',
  '/%66ound': 'GET, HEAD',
  '/nowhere': 'GET, HEAD',
  'http://127.0.0.1/found': 'GET, HEAD',
}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']

describe('an unsupported method', () => {
  test.each(Object.entries(paths))('of %s gets 405 with Allow: %s', async (path, allow) => {
    const allowed = allow.split(', ')
    for (const method of methods.filter((one) => !allowed.includes(one))) {
      const response = await client.send({ method, path })
      expect([method, response.status, headerOf(response, 'Allow')]).toEqual([method, 405, allow])
      if (method === 'HEAD') expect(response.body).toHaveLength(0)
      else expect(nameOf(response)).toBe('method-not-allowed')
    }
  })

  test('of an unknown path gets 404', async () => {
    for (const path of ['/found/', '/v1/urls/', '/%zz', '//', '*', '/12345678901']) {
      for (const method of ['POST', 'DELETE', 'OPTIONS']) {
        expect([path, (await client.send({ method, path })).status]).toEqual([path, 404])
      }
    }
  })
})

describe('a create', () => {
  test.each([
    ...['', 'text/plain', 'application/jsonx', 'application/json-patch+json', 'application/*'],
    ...['application/problem+json', 'application/x-www-form-urlencoded', 'text/json', 'json'],
    ...['application/json,text/plain', 'application /json', 'multipart/form-data; boundary=x'],
  ])('with Content-Type: %s gets 415', async (type) => {
    const response = await client.create(link, { 'Content-Type': type })
    expect([response.status, nameOf(response)]).toEqual([415, 'unsupported-media-type'])
  })

  test('without a Content-Type gets 415, with or without a body', async () => {
    for (const body of [JSON.stringify(link), '']) {
      const response = await client.send({ method: 'POST', path: '/v1/urls', body })
      expect(response.status).toBe(415)
    }
    expect((await client.send({ method: 'POST', path: '/v1/urls' })).status).toBe(415)
  })

  test.each(['gzip', 'br', 'deflate', 'x', 'identity, gzip', ''])(
    'with Content-Encoding: %s gets 415',
    async (encoding) => {
      const response = await client.create(link, { 'Content-Encoding': encoding })
      expect([response.status, nameOf(response)]).toEqual([415, 'unsupported-media-type'])
    },
  )
})

test.each(['gzip, chunked', 'deflate, chunked', 'GZIP,chunked'])(
  'the API and the form return 415 to Transfer-Encoding: %s',
  async (coding) => {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    for (const [path, more] of [['/v1/urls', {}] as const, ['/', form] as const]) {
      const headers = { 'Transfer-Encoding': coding, ...more }
      const response = await client.send({ ...createLinkRequest('0\r\n\r\n', headers), path })
      expect([path, response.status, nameOf(response)]).toEqual([
        path,
        415,
        'unsupported-media-type',
      ])
      expect(jsonOf(response)['detail']).toContain('Transfer-Encoding')
    }
  },
)

describe('a body over 16 KiB', () => {
  const tooLarge = JSON.stringify(link).padEnd(BODY_BYTES_MAX + 1)

  test('gets 413 body-too-large; then the server closes the connection', async () => {
    for (const body of [tooLarge, tooLarge.padEnd(1024 * 1024)]) {
      const connection = await openConnection(service.port)
      const response = await connection.exchange(createLinkRequest(body))
      expect([response.status, nameOf(response)]).toEqual([413, 'body-too-large'])
      expect(headerOf(response, 'Connection')).toBe('close')
      await connection.closed
      connection.close()
    }
  })

  test('gets 413 body-too-large if it arrives in chunks', async () => {
    const connection = await openConnection(service.port)
    const headers = { 'Transfer-Encoding': 'chunked' }
    connection.send(requestBytes(createLinkRequest(Buffer.alloc(0), headers)))
    const chunk = '1000\r\n'.padEnd(0x1000 + 6) + '\r\n'
    for (const piece of [chunk, chunk, chunk, chunk, '1\r\n \r\n', '0\r\n\r\n']) {
      connection.send(piece)
    }
    const response = await connection.nextResponse()
    expect([response.status, nameOf(response)]).toEqual([413, 'body-too-large'])
    connection.close()
  })

  test('gets 415 if its media type is unsupported; a GET with it redirects', async () => {
    expect((await client.create(tooLarge, { 'Content-Type': 'text/plain' })).status).toBe(415)
    expect((await client.send({ path: '/found', body: tooLarge })).status).toBe(302)
    expect((await client.send({ path: '/found' })).status).toBe(302)
  })
})

describe('X-Request-Id', () => {
  const requests: Record<string, RawRequest> = {
    '201': createLinkRequest(link),
    '302': { path: '/found' },
    '200': { path: '/' },
    '400': createLinkRequest('{'),
    '404': { path: '/nowhere' },
    '404 deeper': { path: '/a/b' },
    '405': { path: '/v1/urls' },
    '409': createLinkRequest({ ...link, custom_alias: 'found' }),
    '413': createLinkRequest(' '.repeat(BODY_BYTES_MAX + 1)),
    '415': { method: 'POST', path: '/v1/urls' },
    '422': createLinkRequest({}),
  }
  test.each(Object.entries(requests))(
    'of a %s is that of the request, or a generated one',
    async (status, request) => {
      const idOf = async (headers: RawRequest['headers']) => {
        const response = await client.send({
          ...request,
          headers: { ...request.headers, ...headers },
        })
        expect(String(response.status)).toBe(status.slice(0, 3))
        return headerOf(response, 'X-Request-Id') ?? ''
      }
      for (const id of ['a', '!~', 'x'.repeat(128), '4bf92f35-77b3-4da6-a3ce-929d0e0e4736']) {
        expect(await idOf({ 'x-request-id': id })).toBe(id)
      }
      const generated = new Set<string>()
      const invalid = [[], '', 'two words', 'x'.repeat(129), 'caf\xe9', ['one', 'two']]
      for (const id of invalid) {
        const fresh = await idOf({ 'X-Request-Id': id })
        expect(fresh).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/)
        generated.add(fresh)
      }
      expect(generated.size).toBe(invalid.length)
    },
  )
})

/** Sends bytes; returns the response. The server must close the connection after it. */
async function rejectionOf(bytes: string | Buffer): Promise<RawResponse> {
  const connection = await openConnection(service.port)
  connection.send(bytes)
  const response = await connection.nextResponse()
  expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
  expect(headerOf(response, 'Cache-Control')).toBe('no-store')
  expect(headerOf(response, 'Connection')).toBe('close')
  expect(headerOf(response, 'X-Request-Id')).toBe(jsonOf(response)['request_id'])
  await connection.closed
  expect(connection.rest).toHaveLength(0)
  connection.close()
  return response
}

const host = 'Host: x\r\n'
const post = `POST /v1/urls HTTP/1.1\r\n${host}Content-Type: application/json\r\n`
const malformed: Record<string, string | Buffer> = {
  'not HTTP': 'hello\r\n\r\n',
  'a TLS client': Buffer.from('16030100a5010000a10303', 'hex'),
  'HTTP/2 by prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an unknown version': `GET / HTTP/9.9\r\n${host}\r\n`,
  'an unknown method': `BREW / HTTP/1.1\r\n${host}\r\n`,
  'a method in lower case': `get / HTTP/1.1\r\n${host}\r\n`,
  'an invalid target': `GET found HTTP/1.1\r\n${host}\r\n`,
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
  'a length that is not a number': `${post}Content-Length: 1e3\r\n\r\n`,
  'an unknown transfer coding': `${post}Transfer-Encoding: chunked, gzip\r\n\r\n`,
  'a chunk size that is not a number': `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
  'a chunk longer than its size': `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n`,
}

describe('malformed HTTP', () => {
  test.each(Object.entries(malformed))('gets 400 bad-request: %s', async (_, bytes) => {
    const response = await rejectionOf(bytes)
    expect([response.status, nameOf(response)]).toEqual([400, 'bad-request'])
  })

  test.each([
    ['no Host in HTTP/1.1', { Host: [] }],
    ['two Host headers', { Host: ['localhost', 'localhost'] }],
    ['two Host headers, apart and in any case', { host: 'a', 'X-Other': 'host', HOST: 'b' }],
  ])('gets 400 bad-request: %s', async (_, headers) => {
    const response = await client.send({ path: '/found', headers })
    expect([response.status, nameOf(response)]).toEqual([400, 'bad-request'])
  })

  test.each([
    ['one large header', `X-Large: ${'x'.repeat(HEADER_BYTES_MAX)}\r\n`],
    ['many headers', 'X-Many: 1\r\n'.repeat(HEADER_BYTES_MAX / 8)],
  ])('gets 431 headers-too-large: %s', async (_, headers) => {
    const response = await rejectionOf(`GET /found HTTP/1.1\r\n${host}${headers}\r\n`)
    expect([response.status, nameOf(response)]).toEqual([431, 'headers-too-large'])
  })

  test('gets 431 headers-too-large: a long target, but not a slightly shorter one', async () => {
    const targetOf = (length: number) => `/found?${'x'.repeat(length)}`
    const long = `GET ${targetOf(HEADER_BYTES_MAX)} HTTP/1.1\r\n${host}\r\n`
    expect((await rejectionOf(long)).status).toBe(431)
    const response = await client.send({ path: targetOf(HEADER_BYTES_MAX - 500) })
    expect(response.status).toBe(302)
  })

  test('does not truncate the response to an earlier request on its connection', async () => {
    const connection = await openConnection(service.port)
    connection.send(
      Buffer.concat([requestBytes({ path: '/found' }), Buffer.from('nonsense\r\n\r\n')]),
    )
    expect((await connection.nextResponse()).status).toBe(302)
    await connection.closed
    connection.close()
  })
})

test('CONNECT closes the connection', async () => {
  const connection = await openConnection(service.port)
  connection.send(`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`)
  await connection.closed
  connection.close()
})

test('no response reveals the server software', async () => {
  for (const path of ['/', '/found', '/nowhere', '/v1/urls', '/docs', '/openapi.json']) {
    const response = await client.send({ path })
    expect([...headersOf(response, 'Server'), ...headersOf(response, 'X-Powered-By')]).toEqual([])
  }
})
