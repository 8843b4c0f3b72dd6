// POST /v1/urls of the real standalone process: the requests it rejects, and the problem documents.
// Every response is validated against /openapi.json.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import { jsonOf } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const TARGET_LENGTH_MAX = 2048
const BODY_BYTES_MAX = 16 * 1024

let service: Standalone
let client: Client

beforeAll(async () => {
  const env = { BASE_URL: 'https://cur.tl', OWN_HOSTS: 'short.example,[2001:db8::1]' }
  service = await startStandalone({ env })
  client = await openClient(service.port)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

/** A URL of exactly `length` characters. */
const urlOf = (length: number) => 'https://e.com/'.padEnd(length, 'x')

type Fault = readonly [body: unknown, pointer: string, code: string]
const https = 'https://example.com/'
const faults: Record<string, Fault> = {
  'no long_url': [{}, '/long_url', 'required'],
  'long_url null': [{ long_url: null }, '/long_url', 'invalid-type'],
  'long_url a number': [{ long_url: 7 }, '/long_url', 'invalid-type'],
  'long_url a list': [{ long_url: [https] }, '/long_url', 'invalid-type'],
  'long_url empty': [{ long_url: '' }, '/long_url', 'not-absolute-http'],
  'long_url relative': [{ long_url: '/path' }, '/long_url', 'not-absolute-http'],
  'long_url without scheme': [{ long_url: '//e.com/' }, '/long_url', 'not-absolute-http'],
  'long_url of ftp': [{ long_url: 'ftp://e.com/' }, '/long_url', 'not-absolute-http'],
  'long_url of javascript': [{ long_url: 'javascript:1' }, '/long_url', 'not-absolute-http'],
  'long_url without slashes': [{ long_url: 'http:e.com' }, '/long_url', 'not-absolute-http'],
  'long_url with one slash': [{ long_url: 'https:/e.com' }, '/long_url', 'not-absolute-http'],
  'long_url with backslashes': [{ long_url: 'https:\\\\e.com' }, '/long_url', 'not-absolute-http'],
  'long_url without host': [{ long_url: 'https://' }, '/long_url', 'not-a-url'],
  'long_url of a bad port': [{ long_url: 'https://e.com:99999/' }, '/long_url', 'not-a-url'],
  'long_url of a bad host': [{ long_url: 'https://a%00b/' }, '/long_url', 'not-a-url'],
  'long_url with a user': [{ long_url: 'https://u@e.com/' }, '/long_url', 'credentials'],
  'long_url with a password': [{ long_url: 'https://:p@e.com/' }, '/long_url', 'credentials'],
  'long_url after a space': [{ long_url: ` ${https}` }, '/long_url', 'surrounding-space'],
  'long_url before a line break': [{ long_url: `${https}\n` }, '/long_url', 'surrounding-space'],
  'long_url before a NUL': [{ long_url: `${https}\u0000` }, '/long_url', 'surrounding-space'],
  'long_url before a wide space': [
    { long_url: `${https}\u3000` },
    '/long_url',
    'surrounding-space',
  ],
  'long_url a character too long': [
    { long_url: urlOf(TARGET_LENGTH_MAX + 1) },
    '/long_url',
    'too-long',
  ],
  'long_url too long as stored': [
    { long_url: `${urlOf(TARGET_LENGTH_MAX - 1)}ü` },
    '/long_url',
    'too-long',
  ],
  'own host': [{ long_url: 'https://cur.tl/abc' }, '/long_url', 'own-host'],
  'own host in capitals': [{ long_url: 'HTTPS://CUR.TL/abc' }, '/long_url', 'own-host'],
  'own host with another port': [{ long_url: 'http://cur.tl:81/' }, '/long_url', 'own-host'],
  'own host with a trailing dot': [{ long_url: 'https://cur.tl./' }, '/long_url', 'own-host'],
  'own host in full-width characters': [
    { long_url: 'https://ｃｕｒ.tl/' },
    '/long_url',
    'own-host',
  ],
  'own host percent-encoded': [{ long_url: 'https://%63ur.tl/' }, '/long_url', 'own-host'],
  'another own host': [{ long_url: 'https://short.example/' }, '/long_url', 'own-host'],
  'an own IPv6 address': [{ long_url: 'http://[2001:DB8:0::1]:8/' }, '/long_url', 'own-host'],
  'alias empty': [{ long_url: https, custom_alias: '' }, '/custom_alias', 'malformed'],
  'alias too long': [
    { long_url: https, custom_alias: 'a'.repeat(11) },
    '/custom_alias',
    'malformed',
  ],
  'alias with a slash': [{ long_url: https, custom_alias: 'a/b' }, '/custom_alias', 'malformed'],
  'alias with a line break': [
    { long_url: https, custom_alias: 'ab\n' },
    '/custom_alias',
    'malformed',
  ],
  'alias not ASCII': [{ long_url: https, custom_alias: 'é' }, '/custom_alias', 'malformed'],
  'alias a lone surrogate': [
    { long_url: https, custom_alias: '\udc00' },
    '/custom_alias',
    'malformed',
  ],
  'alias a number': [{ long_url: https, custom_alias: 5 }, '/custom_alias', 'invalid-type'],
  'ttl_days zero': [{ long_url: https, ttl_days: 0 }, '/ttl_days', 'out-of-range'],
  'ttl_days negative': [{ long_url: https, ttl_days: -1 }, '/ttl_days', 'out-of-range'],
  'ttl_days too large': [{ long_url: https, ttl_days: 3651 }, '/ttl_days', 'out-of-range'],
  'ttl_days a fraction': [{ long_url: https, ttl_days: 1.5 }, '/ttl_days', 'invalid-type'],
  'ttl_days a string': [{ long_url: https, ttl_days: '1' }, '/ttl_days', 'invalid-type'],
  'ttl_days true': [{ long_url: https, ttl_days: true }, '/ttl_days', 'invalid-type'],
  'ttl_days infinite': [
    '{"long_url":"https://e.com/","ttl_days":1e999}',
    '/ttl_days',
    'invalid-type',
  ],
  'another member': [{ long_url: https, extra: 1 }, '/extra', 'unknown-field'],
  'a member whose pointer needs escapes': [
    { long_url: https, 'a/b~': 1 },
    '/a~1b~0',
    'unknown-field',
  ],
  'the member __proto__': [
    '{"long_url":"https://e.com/","__proto__":{}}',
    '/__proto__',
    'unknown-field',
  ],
  'the member constructor': [{ long_url: https, constructor: 1 }, '/constructor', 'unknown-field'],
  'JSON null': ['null', '', 'invalid-type'],
  'a JSON list': ['[]', '', 'invalid-type'],
  'a JSON string': ['"https://example.com/"', '', 'invalid-type'],
  'a JSON number': ['1', '', 'invalid-type'],
  'the deepest nesting': [
    `{"long_url":${'['.repeat(8000)}${']'.repeat(8000)}}`,
    '/long_url',
    'invalid-type',
  ],
}

describe('an invalid create', () => {
  test.each(Object.entries(faults))(
    'gets 422 with a pointer: %s',
    async (_, [body, pointer, code]) => {
      const response = await client.create(body)
      expect(response.status).toBe(422)
      const problem = jsonOf(response)
      expect(problem['type']).toBe('https://cur.tl/problems/invalid-request')
      const { errors } = problem as { errors: { pointer: string; code: string; detail: string }[] }
      expect(errors).toEqual([{ pointer, code, detail: expect.any(String) }])
    },
  )

  const unknown = 'is unknown: allowed are long_url, custom_alias and ttl_days'
  test.each([
    ['[]', 'The body must be a JSON object with the member long_url'],
    ['{}', 'long_url is required'],
    [{ long_url: https, extra: 1 }, `The member "extra" ${unknown}`],
    [{ long_url: https, '': 1 }, `The member "" ${unknown}`],
    [{ long_url: https, 'a/~1"': 1 }, `The member "a/~1\\"" ${unknown}`],
    [{ long_url: https, ['x'.repeat(99)]: 1 }, `The member "${'x'.repeat(40)}…" ${unknown}`],
  ])('gets a detail that is a sentence: %j', async (body, detail) => {
    expect(jsonOf(await client.create(body))['detail']).toBe(detail)
  })

  test('gets every fault in one response', async () => {
    const body = { long_url: 'x', custom_alias: '?', ttl_days: 0, more: 1 }
    const { errors } = jsonOf(await client.create(body)) as { errors: { pointer: string }[] }
    const pointers = errors.map(({ pointer }) => pointer)
    expect(pointers.sort()).toEqual(['/custom_alias', '/long_url', '/more', '/ttl_days'])
  })

  test.each([
    ...[
      'v1',
      'V1',
      'v2',
      'v123456789',
      'docs',
      'Docs',
      'problems',
      'api',
      'admin',
      'app',
      'assets',
    ],
    ...['static', 'health', 'healthz', 'livez', 'readyz', 'metrics', 'status', 'login', 'about'],
    ...['help', 'terms', 'abuse', 'HELP'],
  ])('gets 422 for the reserved alias %s', async (alias) => {
    const response = await client.create({ long_url: https, custom_alias: alias })
    expect(response.status).toBe(422)
    expect(jsonOf(response)['errors']).toEqual([
      { pointer: '/custom_alias', code: 'reserved', detail: expect.any(String) },
    ])
  })
})

const malformedBodies: Record<string, string | Buffer> = {
  empty: '',
  'only white space': '  ',
  truncated: '{"long_url":',
  'form data': 'long_url=https://e.com/',
  'two values': '{"long_url":"https://e.com/"}{}',
  'single quotes': "{'long_url':'https://e.com/'}",
  'a trailing comma': '{"long_url":"https://e.com/",}',
  'invalid UTF-8': Buffer.from(
    '7b226c6f6e675f75726c223a2268747470733a2f2f652e636f6d2fff227d',
    'hex',
  ),
  'truncated UTF-8': Buffer.from('{"long_url":"https://e.com/\u00fc').subarray(0, -1),
  'a raw line break in a string': '{"long_url":"https://e.com/\n"}',
  'UTF-16': Buffer.from('{"long_url":"https://e.com/"}', 'utf16le'),
  'the deepest nesting without closing brackets': '['.repeat(BODY_BYTES_MAX),
}

describe('a body that is not JSON', () => {
  test.each(Object.entries(malformedBodies))('gets 400 malformed-json: %s', async (_, body) => {
    const response = await client.create(body)
    expect(response.status).toBe(400)
    expect(jsonOf(response)['type']).toBe('https://cur.tl/problems/malformed-json')
  })
})
