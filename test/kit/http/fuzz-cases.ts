// Random requests, valid and invalid. Their framing is valid, so that each must get a response.
import { createLinkRequest } from './client.ts'
import type { Random } from '../random.ts'
import type { RawRequest } from './raw-http.ts'

/** One case; `isValid` if the response must be 201 or 409. */
export interface FuzzCase {
  readonly request: RawRequest
  readonly isValid: boolean
}

const visible = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i))
const odd = [
  ...['\0', '\t', '\n', '\r', ' ', '\u007f', '\u0080', 'ü', 'ß', 'ﬀ', '\u00ad', '\u200b', '\u202e'],
  ...[
    '\u2028',
    '\u3000',
    '。',
    'ａ',
    '中',
    '\u{1f600}',
    '\u{10ffff}',
    '\ufeff',
    '\ufffd',
    '\ud800',
  ],
  ...[
    '\udc00',
    'a\u0301',
    '\u{e0001}',
    '%',
    '%2',
    '%zz',
    '%00',
    '%2F',
    '%F0%9F',
    '%ff',
    '%25',
    '+',
  ],
]
const schemes = ['http://', 'https://', 'HTTP://', 'hTTpS://']
const hosts = [
  ...[
    'example.com',
    'EXAMPLE.com',
    'e.com.',
    'münchen.example',
    'xn--mnchen-3ya.example',
    '中.example',
  ],
  ...['127.0.0.1', '0x7f.1', '2130706433', '[::1]', '[2001:db8::1]', 'a_b.example', '☃.example'],
  ...[
    '%65xample.com',
    'ex%C3%A9.com',
    'a--b.example',
    'x',
    '1.example',
    `${'a'.repeat(63)}.example`,
  ],
]
const ports = ['', '', '', ':80', ':443', ':8080', ':0', ':65535', ':']

/** A URL that is valid as a target. */
function validUrl(random: Random): string {
  const safe = (max: number) => random.list(max, () => random.pick(visible)).join('')
  const mixed = (max: number) =>
    random.list(max, () => random.pick(random.chance(0.3) ? odd : visible)).join('')
  const piece = random.chance(0.5) ? safe : mixed
  const origin = random.pick(schemes) + random.pick(hosts) + random.pick(ports)
  const length = random.chance(0.05) ? 150 : 12
  const path = random.chance(0.8) ? `/${piece(length)}` : ''
  const query = random.chance(0.4) ? `?${piece(length)}` : ''
  const fragment = random.chance(0.3) ? `#${piece(length)}` : ''
  return `${origin}${path}${query}${fragment}x`
}

const codeCharacters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-'.split('')
// No reserved word starts with an underscore.
const validAlias = (random: Random) =>
  `_${random.list(9, () => random.pick(codeCharacters)).join('')}`

function validBody(random: Random): Record<string, unknown> {
  const { int, chance } = random
  return {
    // A trailing `x` directly after the host or port would change it.
    long_url: validUrl(random).replace(/^([^:]+:\/\/[^/?#]*)x$/, '$1/x'),
    ...(chance(0.4) && { custom_alias: chance(0.1) ? null : validAlias(random) }),
    ...(chance(0.3) && { ttl_days: chance(0.1) ? null : 1 + int(3650) }),
  }
}

const oddValues: readonly unknown[] = [
  ...[null, true, false, 0, -0, 1.5, -1, 1e21, 1e308, 3651, 2 ** 53, '', ' ', 'null', [], {}],
  ...[[[]], { long_url: 'https://e.com/' }, ['https://e.com/'], 'x'.repeat(3000), '\ud800', '\0'],
  ...['http:e.com', 'https:/e.com', '//e.com', 'ftp://e.com', 'javascript:alert(1)', 'https://'],
  ...['https://u:p@e.com/', 'http://localhost/', 'https://e.com:99999', 'https://[::', 'data:,x'],
]
const oddNames = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'long_url ', 'LONG_URL', '', '\0'],
  ...['longUrl', 'url', 'code', 'long_url\ud800', 'a/b', '~0', 'x'.repeat(5000)],
]

/** A valid body with one or more changes, as JSON. */
function mutatedJson(random: Random): string {
  const members = Object.entries(validBody(random))
  for (let times = random.int(3); times >= 0; times--) {
    const at = random.int(members.length)
    const name = members[at]?.[0] ?? ''
    const value = random.pick(oddValues)
    const changes = [
      () => (members[at] = [name, value]),
      () => members.splice(at, 1),
      () => members.push([random.pick(oddNames), value]),
      () => members.push([name, value]),
      () => (members[at] = [name, nested(random, value)]),
      () => (members[at] = [name, `${String(value)}${random.pick(odd)}`]),
    ]
    random.pick(changes)()
    if (members.length === 0) return random.pick(['{}', '[]', 'null', '1', '"x"', '', ' '])
  }
  const pairs = members.map(([name, value]) => `${JSON.stringify(name)}:${numeral(random, value)}`)
  return `{${pairs.join(',')}}`
}

function nested(random: Random, value: unknown): unknown {
  let whole = value
  for (let depth = random.int(60); depth > 0; depth--)
    whole = random.chance(0.5) ? [whole] : { x: whole }
  return whole
}

function numeral(random: Random, value: unknown): string {
  if (!random.chance(0.05)) return JSON.stringify(value)
  return random.pick([
    '1e999',
    '-1e999',
    '1.0',
    '10e-1',
    '01',
    '+1',
    '.5',
    'NaN',
    '1E+2',
    '9'.repeat(400),
  ])
}

/** Changes, removes, inserts or duplicates bytes at random positions. */
function mutatedBytes(random: Random, bytes: Buffer): Buffer {
  const mutated = [...bytes]
  for (let times = random.int(6); times >= 0; times--) {
    const at = random.int(mutated.length + 1)
    const changes = [
      () => (mutated[at] = random.int(256)),
      () => mutated.splice(at, 1 + random.int(8)),
      () => mutated.splice(at, 0, random.int(256), random.int(256)),
      () => mutated.splice(at, 0, ...mutated.slice(0, random.int(50))),
    ]
    random.pick(changes)()
  }
  return Buffer.from(mutated)
}

const types = [
  ...[
    'application/json',
    'application/json;charset=x',
    'APPLICATION/JSON ; a="b"',
    'text/plain',
    '',
  ],
  ...['application/x-www-form-urlencoded', 'application/jsonp', 'multipart/form-data', '\xff', ','],
]
const headerNames = [
  ...['Accept', 'Accept-Language', 'Content-Type', 'Content-Encoding', 'Idempotency-Key', 'Origin'],
  ...['X-Request-Id', 'X-Forwarded-For', 'Cookie', 'If-None-Match', 'Range', 'Authorization', 'X'],
  ...['traceparent', 'Referer', 'User-Agent', 'Host', 'X-HTTP-Method-Override', '__proto__', 'Via'],
]
const headerValues = [
  '*/*',
  'text/html',
  'gzip',
  'identity',
  '"x"',
  '*',
  ',',
  ';q=x',
  'null',
  '-1',
  '..',
]
const headerBytes = Array.from({ length: 224 }, (_, i) => String.fromCharCode(i + 0x20)).filter(
  (character) => character !== '\x7f',
)

function oddHeaders(random: Random): Record<string, string> {
  const value = () =>
    random.chance(0.5)
      ? random.pick(headerValues)
      : random.list(random.chance(0.05) ? 2000 : 20, () => random.pick(headerBytes)).join('')
  return Object.fromEntries(random.list(5, () => [random.pick(headerNames), value()]))
}

const methods = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE'],
  ...['MKCOL', 'LOCK', 'SEARCH', 'M-SEARCH', 'QUERY'],
]
const paths = [
  ...[
    '/',
    '/v1/urls',
    '/docs',
    '/openapi.json',
    '/robots.txt',
    '/favicon.ico',
    '/problems/x',
    '/v1',
  ],
  ...[
    '/problems/alias-taken',
    '/assets/none',
    '//',
    '/../',
    '/.',
    '/admin/links/x',
    '/%',
    '/%zz',
    '*',
  ],
]

/** A path of characters that a request line may contain. */
function oddPath(random: Random, codes: readonly string[]): string {
  const base =
    codes.length > 0 && random.chance(0.4) ? `/${random.pick(codes)}` : random.pick(paths)
  if (random.chance(0.3)) return base
  const piece = () =>
    random.chance(0.3)
      ? random.pick(odd).replaceAll(/[^\x21-\x7e]/g, '%C3%28')
      : random.pick(visible)
  const more = random.list(random.chance(0.05) ? 3000 : 8, piece).join('')
  const changes = [base + more, `/${more}`, `${base}?${more}`, `${base}/${more}`, `http://x${base}`]
  return random.pick(changes)
}

/** The next case; `codes` are those of existing links. */
export function nextCase(random: Random, codes: readonly string[]): FuzzCase {
  const kind = random.int(100)
  if (kind < 30) return { request: createLinkRequest(validBody(random)), isValid: true }
  if (kind < 55) return { request: createLinkRequest(mutatedJson(random)), isValid: false }
  if (kind < 65) {
    const bytes = Buffer.from(JSON.stringify(validBody(random)))
    return { request: createLinkRequest(mutatedBytes(random, bytes)), isValid: false }
  }
  if (kind < 75) {
    const headers = { 'Content-Type': random.pick(types), ...oddHeaders(random) }
    const body = random.chance(0.5) ? validBody(random) : mutatedJson(random)
    return { request: createLinkRequest(body, headers), isValid: false }
  }
  const request: RawRequest = {
    method: random.chance(0.5) ? 'GET' : random.pick(methods),
    path: oddPath(random, codes),
    headers: oddHeaders(random),
    ...(random.chance(0.2) && { body: mutatedJson(random) }),
  }
  return { request, isValid: false }
}

/** The bytes of a request, some of them changed, and possibly truncated. */
export function brokenBytes(random: Random, bytes: Buffer): Buffer {
  return mutatedBytes(
    random,
    random.chance(0.5) ? bytes : bytes.subarray(0, random.int(bytes.length)),
  )
}
