// The rules of the contract for long_url, one table for each rule.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseHost, parseTargetUrl, TARGET_LENGTH_MAX } from './target-url.ts'

const own = new Set(['cur.tl', '[::1]', '127.0.0.1', 'xn--krzer-kva.example'])
const parse = (text: string) => parseTargetUrl(text, own)

test.each([
  ...['http://a', 'https://a', 'HTTPS://A', 'hTTp://example.com', 'http://example.com:8080/a?b#c'],
  ...[
    'http://example.com',
    'http://EXAMPLE.com/',
    'http://example.com/%7e/../x',
    'http://1.2.3.4/',
  ],
  ...[
    'http://[2001:db8::1]:80/',
    'http://a//b///c',
    'http://example.com/a\\b',
    'http://example.com?',
  ],
  ...[
    'http://example.com/#',
    'http://example.com/"<>^`{|}',
    'http://xn--nxa.example/',
    'http://a/%zz',
  ],
  ...[
    'http:///example.com/',
    'http:////example.com',
    'http://\\example.com/',
    'http://example.com.',
  ],
  ...[
    'http://example.com:/',
    'http://example.com:0/',
    'http://example.com/@b:c@',
    'http://a/?x=http://b',
  ],
  ...[
    'http://cur.tl.example/',
    'http://notcur.tl/',
    'http://example.com/http://cur.tl/',
    'http://tl',
  ],
])('%j is stored exactly as sent', (text) => {
  expect(parse(text)).toEqual({ longUrl: text })
})

test.each([
  ['http://exämple.com/', 'http://xn--exmple-cua.com/'],
  ['http://example.com/ä', 'http://example.com/%C3%A4'],
  ['http://example.com/a b', 'http://example.com/a%20b'],
  ['http://example.com/?q=ä&r=€', 'http://example.com/?q=%C3%A4&r=%E2%82%AC'],
  ['http://example.com/#ä b', 'http://example.com/#%C3%A4%20b'],
  ['HTTP://EXAMPLE.com:80/ä/../b', 'http://example.com/b'],
  ['http://例え.jp', 'http://xn--r8jz45g.jp/'],
  ['http://example。com/', 'http://example.com/'],
  ['http://exa\tmple.com/a\nb', 'http://example.com/ab'],
  ['http://example.com/\u0000a', 'http://example.com/%00a'],
  ['http://example.com/\u007fx', 'http://example.com/%7Fx'],
  ['http://example.com/\ud800', 'http://example.com/%EF%BF%BD'],
  ['http://example.com/😀', 'http://example.com/%F0%9F%98%80'],
])('%j is stored as the parser serialises it', (text, longUrl) => {
  expect(parse(text)).toEqual({ longUrl })
})

test.each([
  ...['', 'a', 'example.com', '//example.com', '/path', 'ftp://http://a', 'javascript:alert(1)'],
  ...['http:example.com', 'http:/example.com', 'http:\\\\example.com', 'http:/\\example.com'],
  ...['https:', 'https:/', 'mailto:a@b.c', 'data:,x', 'ws://example.com', 'httpss://example.com'],
  ...['ht\ntp://example.com', 'http\t://example.com', 'http:\t//example.com', 'file:///etc/passwd'],
])('%j is not absolute http', (text) => {
  expect(parse(text)).toEqual({ fault: 'not-absolute-http' })
})

test.each([
  ...['http://', 'https://', 'http://?a', 'http://#a', 'http://:80/', 'http://a:65536/'],
  'http://a:b/',
  ...[
    'http://[::1',
    'http://[g::1]/',
    'http://1.2.3.256/',
    'http://a b/',
    'http://a<b/',
    'http://%/',
  ],
  ...['http://a%00b/', 'http://a^b/', 'http://a|b/', 'http://\u00ad/', 'http://a%zz.b/'],
  // A host of dots only has no name; an escaped or full-width @ has no meaning in the syntax.
  ...['http://.', 'http://../', 'http://...:80/', 'http://%2e/', 'http://。。/a', 'http://\\.\\a'],
  ...['http://a%40b/', 'http://a＠b/', 'http://@/', 'http://:@/'],
])('%j is not a URL', (text) => {
  expect(parse(text)).toEqual({ fault: 'not-a-url' })
})

const spaces = [
  ...[
    ' ',
    '\t',
    '\n',
    '\r',
    '\f',
    '\v',
    '\u0000',
    '\u001f',
    '\u0085',
    '\u00a0',
    '\u1680',
    '\u2003',
  ],
  ...['\u2028', '\u2029', '\u202f', '\u205f', '\u3000', '\ufeff'],
]

test.each(spaces)('white space %j at either end is an error and is not trimmed', (space) => {
  expect(parse(`${space}http://example.com/`)).toEqual({ fault: 'surrounding-space' })
  expect(parse(`http://example.com/${space}`)).toEqual({ fault: 'surrounding-space' })
  expect(parse(space)).toEqual({ fault: 'surrounding-space' })
})

test.each([
  ...['http://user@example.com/', 'http://user:pw@example.com/', 'http://:pw@example.com/'],
  ...['http://a@b@example.com/', 'https://cur.tl@example.com/', 'http://%20@example.com/'],
  ...['http://ä@example.com/', 'http://user:@cur.tl/', 'http:///user@example.com'],
  // The parser drops an empty user name and password, but the @ as sent is rejected.
  ...['http://@example.com/', 'http://:@example.com/', 'http://@@example.com', 'http://@cur.tl/'],
  ...['http://\\@example.com/', 'http:///\\/@example.com', 'http://\t@example.com/'],
  ...['http://:\n@example.com/', 'http:///\r\\\t@example.com/', 'HTTPS://:@EXAMPLE.com:80\\a'],
  ...['http://@[::1]/', 'http://:@1.2.3.4/', 'http://@%65xample.com/', 'http://@。/'],
])('%j contains credentials', (text) => {
  expect(parse(text)).toEqual({ fault: 'credentials' })
})

test.each([
  ...[
    'http://cur.tl',
    'https://cur.tl/abc',
    'http://cur.tl:8080/',
    'http://CUR.TL/',
    'http://cur.tl./',
  ],
  ...[
    'http://cur.tl..',
    'http://cur.tl.:80/',
    'http://%63ur.tl/',
    'http://%43%55%52.tl',
    'http://ｃｕｒ.tl',
  ],
  ...[
    'http://cur。tl/',
    'http://cur.tl。/',
    'http://cu\tr.tl/',
    'http:///cur.tl',
    'http://\\cur.tl/x',
  ],
  ...['http://cur.tl\\@example.com/', 'http://cur.tl?x', 'http://cur.tl#x', 'http://cu\u00adr.tl/'],
  ...[
    'http://[::1]/',
    'http://[0:0:0:0:0:0:0:1]:3000/',
    'http://[0000::0001]',
    'http://127.0.0.1/',
  ],
  ...[
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
  ],
  ...['http://kürzer.example/', 'http://KÜRZER.example', 'http://xn--krzer-kva.example./'],
])('%j has a host of this service', (text) => {
  expect(parse(text)).toEqual({ fault: 'own-host' })
})

test.each([
  ['cur.tl', 'cur.tl'],
  ['CUR.tl.', 'cur.tl'],
  ['cur.tl:8443', 'cur.tl'],
  ['kürzer.example', 'xn--krzer-kva.example'],
  ['[0::1]:80', '[::1]'],
  ['2130706433', '127.0.0.1'],
])('parseHost(%j) is %j', (text, host) => {
  expect(parseHost(text)).toBe(host)
})

test.each([
  '.',
  '...',
  '%2e',
  '@a',
  ':@a',
  '\t@a',
  '',
  ' ',
  'a/b',
  'a b',
  'user@a',
  'a?b',
  'a#b',
  'http://a/',
  'a:b',
  '[::1',
  '%',
])('parseHost(%j) is undefined', (text) => {
  expect(parseHost(text)).toBeUndefined()
})

test('the length as sent is limited', () => {
  const base = 'http://example.com/'
  const longest = base + 'x'.repeat(TARGET_LENGTH_MAX - base.length)
  expect(parse(longest)).toEqual({ longUrl: longest })
  expect(parse(`${longest}x`)).toEqual({ fault: 'too-long' })
  expect(parse(`${longest} `)).toEqual({ fault: 'too-long' })
  const dots = `${base}${'./'.repeat(1100)}ä`
  expect(parse(dots)).toEqual({ fault: 'too-long' })
})

test('the length as stored is limited, too', () => {
  const base = 'http://example.com/'
  const letters = Math.floor((TARGET_LENGTH_MAX - base.length) / '%C3%A4'.length)
  expect(parse(base + 'ä'.repeat(letters))).toEqual({ longUrl: base + '%C3%A4'.repeat(letters) })
  expect(parse(base + 'ä'.repeat(letters + 1))).toEqual({ fault: 'too-long' })
})

test('a stored target is visible ASCII, short enough, and not on a host of the service', () => {
  const targets = fc.oneof(
    fc.string({ unit: 'binary' }).map((text) => `http://example.com/${text}`),
    fc.string({ unit: 'binary' }).map((text) => `https://${text}`),
    fc.tuple(fc.string({ maxLength: 3 }), fc.string()).map(([a, b]) => `http://${a}cur.tl${b}`),
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
  )
  fc.assert(
    fc.property(targets, (text) => {
      const parsed = parse(text)
      if ('fault' in parsed) return
      expect(parsed.longUrl).toMatch(/^https?:\/\/[\x21-\x7e]+$/i)
      expect(parsed.longUrl.length).toBeLessThanOrEqual(TARGET_LENGTH_MAX)
      const { hostname, href } = new URL(parsed.longUrl)
      expect(own.has(hostname.replace(/\.+$/, ''))).toBe(false)
      expect(href).toBe(new URL(text).href) // the stored form has the same meaning
      expect(parse(parsed.longUrl)).toEqual(parsed)
    }),
    { numRuns: 1000 },
  )
})

test('an @ in the authority is rejected, elsewhere it is accepted', () => {
  const fragments = [
    '@',
    '@',
    ':',
    '/',
    '\\',
    '?',
    '#',
    '\t',
    '\n',
    '.',
    'a',
    '1',
    '%40',
    '＠',
    '[::1]',
  ]
  const targets = fc
    .tuple(fc.constantFrom('http://', 'HTTPS://'), fc.array(fc.constantFrom(...fragments)))
    .map(([scheme, rest]) => `${scheme}${rest.join('')}e`)
  let [rejected, accepted] = [0, 0]
  fc.assert(
    fc.property(targets, (text) => {
      const url = URL.parse(text)
      if (url === null) return
      // If the @ is in the authority, replacing it by a letter changes the host.
      const other = URL.parse(text.replaceAll('@', 'x'))
      const isInAuthority = other?.host !== url.host
      const parsed = parse(text)
      expect('fault' in parsed && parsed.fault === 'credentials').toBe(isInAuthority)
      if (isInAuthority) rejected++
      else if (text.includes('@') && 'longUrl' in parsed) accepted++
    }),
    { numRuns: 10_000 },
  )
  expect(Math.min(rejected, accepted)).toBeGreaterThan(50)
})

test('the parse time of many dots does not depend on their position in the host', () => {
  const dots = '.'.repeat(TARGET_LENGTH_MAX - 'http://aa'.length)
  const targets = [`http://a${dots}a`, `http://aa${dots}`]
  // The minimum of many runs, because other processes delay some of them.
  const quickest = targets.map(() => Infinity)
  for (let times = 0; times < 500; times++) {
    targets.forEach((text, at) => {
      const startedMs = performance.now()
      parse(text)
      quickest[at] = Math.min(quickest[at] ?? Infinity, performance.now() - startedMs)
    })
  }
  const [inside = 0, atEnd = 0] = quickest
  expect(inside).toBeLessThan(20 * atEnd)
})
