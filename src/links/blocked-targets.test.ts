// Which targets a list blocks: the rules one by one, and generated lists and targets compared with
// a naive matcher.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseBlockedEntry } from './blocked-entry.ts'
import { createTableBuilder } from './blocked-table-builder.ts'
import { createBlockedTargets } from './blocked-targets.ts'
import { parseTargetUrl } from './target-url.ts'

const SEED = 20_261_127

/** The list of these lines. */
function listOf(lines: readonly string[]) {
  const builder = createTableBuilder({ entries: 0, seed: SEED })
  for (const line of lines) {
    const entry = parseBlockedEntry(line)
    if (entry === undefined || 'fault' in entry) throw new Error(`${line} is not an entry`)
    builder.add(entry)
  }
  return { entries: builder.entries(), ...createBlockedTargets(builder.finish()) }
}

const list = listOf([
  ...['evil.example', '127.0.0.1', '[::1]', 'bücher.example', 'localhost'],
  ...['sites.example/bad', 'sites.example/worse/', 'sites.example?page=1', 'sub.sites.example/'],
  ...['video.example/@bad'],
])

test.each([
  ...['http://evil.example', 'https://evil.example/', 'https://evil.example:8443/a?b#c'],
  ...['http://www.evil.example/', 'http://a.b.c.evil.example:1/', 'http://.evil.example/'],
  ...['HTTP://EVIL.example/', 'http://evil.example./', 'http://evil.example...:80/'],
  ...['http://evil.example?a', 'http://evil.example#a', 'http://e%76il.example/'],
  ...['http:///evil.example/', 'http://\\evil.example\\a', 'http://evil.example\\@other.example/'],
  ...['http://evil.example:/', 'http://e\u00advil.example/', 'http://evil。example/'],
  ...['http://127.0.0.1/', 'http://0x7f.1:8080/', 'http://2130706433/', 'http://127.1./'],
  ...['http://[::1]/', 'http://[0:0:0:0:0:0:0:1]:3000/', 'http://localhost/', 'http://a.localhost'],
  ...['http://xn--bcher-kva.example/', 'http://BÜCHER.example/', 'http://a.bücher.example/'],
  ...['http://sites.example/bad', 'https://sites.example:8443/badly', 'http://sites.example./bad'],
  ...['http://sites.example/%62ad', 'http://sites.example/b%61%64/x', 'http://SITES.example/bad?a'],
  ...[
    'http://sites.example/good/../bad',
    'http://sites.example/%2e/bad',
    'http://sites.example\\bad',
  ],
  ...[
    'http://sites.example/worse/x',
    'http://sites.example?page=1',
    'http://sites.example/?page=12',
  ],
  ...[
    'http://video.example/%40bad',
    'http://video.example//@bad',
    'http://video.example/x/..//@bad',
  ],
  ...['http://video.example/x%2F..%2f@bad', 'http://video.example/%2f.%2F%40bad'],
  ...['http://[::ffff:127.0.0.1]/', 'http://[64:ff9b::7f00:1]:80/a'],
  ...['http://sub.sites.example', 'http://sub.sites.example/a', 'http://sub.sites.example?a'],
])('%j is blocked', (target) => {
  const parsed = parseTargetUrl(target, new Set())
  expect(parsed).toHaveProperty('longUrl')
  expect('longUrl' in parsed && list.has(parsed.longUrl)).toBe(true)
})

test.each([
  ...['http://notevil.example/', 'http://evil.example.org/', 'http://example/', 'http://evil/'],
  ...['http://other.example/evil.example', 'http://other.example?http://evil.example/'],
  ...['http://127.0.0.2/', 'http://127.0.0.11/', 'http://[::2]/', 'http://[::127.0.0.1]/'],
  ...['http://sites.example/', 'http://sites.example', 'http://sites.example/ba', 'http://a/bad'],
  ...['http://sites.example/BAD', 'http://sites.example/good#/bad', 'http://sites.example/x/bad'],
  ...[
    'http://sites.example/bad/../good',
    'http://sites.example/worse',
    'http://a.sites.example/bad',
  ],
  ...['http://sites.example/%2562ad', 'http://sites.example/%5cbad', 'http://a.sub.sites.example/'],
  ...['http://video.example/%2540bad', 'http://video.example/?/@bad', 'http://[::ffff:127.0.0.2]/'],
  ...['http://', 'not a URL', '', 'http://1.2.3.4.5/', 'ftp://evil.example.org/'],
])('%j is not blocked', (target) => {
  expect(list.has(target)).toBe(false)
})

test('an entry counts once, however often and in whichever form it is listed', () => {
  const { entries, has } = listOf([
    ...['evil.example', 'EVIL.example.', 'https://evil.example:80', 'evil.example/bad'],
    ...['evil.example/bad', 'http://evil.example/%62ad', 'www.evil.example'],
  ])
  expect(entries).toBe(3)
  expect(has('http://evil.example/')).toBe(true)
})

test('an empty list blocks nothing', () => {
  expect(listOf([]).has('http://evil.example/')).toBe(false)
})

test('a table that has grown many times contains exactly its entries', () => {
  const name = (i: number) => `${(i * 7919).toString(36)}.example${i % 10}.org`
  const lines = Array.from({ length: 20_000 }, (_, i) => (i % 2 ? name(i) : `${name(i)}/p${i}/`))
  const { entries, has } = listOf(lines)
  expect(entries).toBe(lines.length)
  let wrong = 0
  for (let i = 0; i < 2 * lines.length; i++) {
    const isListed = i < lines.length
    if (has(`http://${name(i)}/p${i}/`) !== isListed) wrong++
    if (has(`http://${name(i)}/p${i}`) !== (isListed && i % 2 === 1)) wrong++
  }
  expect(wrong).toBe(0)
})

/** The meaning of a list, without a table: compares each entry with the parsed target. */
function isBlockedNaively(lines: readonly string[], target: string): boolean {
  const hostOf = (url: URL) => url.hostname.replace(/\.+$/, '')
  const decode = (text: string, characters: string) => {
    let result = text.replaceAll(/%../g, (escape) => escape.toUpperCase())
    for (const one of characters) {
      const escape = `%${one.charCodeAt(0).toString(16).toUpperCase()}`
      result = result.split(escape).join(one)
    }
    return result
  }
  const word = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~'
  const pathOf = (url: URL) => {
    const path: string[] = []
    const segments = decode(url.pathname, `${word}!$&'()*+,;=:@|/[]`).split('/')
    for (const [at, segment] of segments.entries()) {
      const isLast = at === segments.length - 1
      if (segment === '..') path.pop()
      else if (segment !== '.' && segment !== '') path.push(segment)
      if (isLast && ['..', '.', ''].includes(segment)) path.push('')
    }
    return `/${path.join('/')}${decode(url.search, word)}`
  }
  const url = new URL(target)
  return lines.some((line) => {
    const entry = new URL(/^https?:/i.test(line) ? line : `http://${line}`)
    if (/^(https?:\/\/)?[^/?]*$/i.test(line)) {
      return `.${hostOf(url)}`.endsWith(`.${hostOf(entry)}`)
    }
    return hostOf(url) === hostOf(entry) && pathOf(url).startsWith(pathOf(entry))
  })
}

const labels = fc.constantFrom(
  'a',
  'b',
  'evil',
  'EVIL',
  'e%76il',
  'xn--bcher-kva',
  'bücher',
  'a--b',
)
const names = fc
  .tuple(fc.array(labels, { minLength: 1, maxLength: 3 }), fc.constantFrom('test', 'TEST', 'x1'))
  .map(([list, top]) => [...list, top].join('.'))
const addresses = fc.constantFrom(
  ...['127.0.0.1', '0x7f.1', '2130706433', '10.0.0.1', '0.1', '[::1]', '[0:0::1]', '[::7f00:1]'],
)
const hosts = fc.oneof({ weight: 4, arbitrary: names }, { weight: 1, arbitrary: addresses })
const schemes = fc.constantFrom('http://', 'https://', 'HTTPS://')
const ports = fc.constantFrom('', '', ':80', ':443', ':8443', ':')
const dots = fc.constantFrom('', '', '', '.', '..')
const segments = fc.constantFrom(
  ...[
    '/',
    '/',
    'bad',
    '%62ad',
    'b%61d',
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '%2f',
    '%2F',
    '\\',
    '?',
    'q=1',
  ],
  ...["'", '"', '<', '%zz', '%', 'ä', 'x', '%7E', '~', '%40', '@', '%3a', ':', '//', '%3F', '%5C'],
)
const paths = fc
  .tuple(fc.constantFrom('/', '/', '/', '?'), fc.array(segments, { maxLength: 5 }))
  .map(([start, list]) => start + list.join(''))
const fragments = fc.constantFrom('', '', '#', '#/bad', '#?/')
const lines = fc
  .tuple(fc.option(schemes, { nil: '' }), hosts, dots, ports, fc.option(paths, { nil: '' }))
  .map((components) => components.join(''))
  .filter((line) => {
    const entry = parseBlockedEntry(line)
    return entry !== undefined && 'host' in entry
  })
const targets = fc
  .tuple(schemes, hosts, dots, ports, fc.option(paths, { nil: '' }), fragments)
  .map((components) => parseTargetUrl(components.join(''), new Set()))
  .filter((parsed) => 'longUrl' in parsed)
  .map(({ longUrl }) => longUrl)

test('a list blocks the same targets as a naive matcher', () => {
  const counts = { blocked: 0, others: 0 }
  fc.assert(
    fc.property(
      fc.array(lines, { minLength: 1, maxLength: 4 }),
      fc.array(targets, { minLength: 1, maxLength: 10 }),
      (listed, requested) => {
        const { has } = listOf(listed)
        for (const target of requested) {
          const expected = isBlockedNaively(listed, target)
          expect([target, has(target)]).toEqual([target, expected])
          // The parser's form takes the other path through the code.
          expect([target, has(new URL(target).href)]).toEqual([target, expected])
          counts[expected ? 'blocked' : 'others']++
        }
      },
    ),
    { numRuns: 1500, seed: SEED },
  )
  expect(Math.min(counts.blocked, counts.others)).toBeGreaterThan(100)
})
