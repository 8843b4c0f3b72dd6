// The contract of an import format, run on every format and file: rows and faults in the order of
// the file, however its bytes are split; a damaged file never yields another link.
import { describe, expect, test } from '@jest/globals'
import { createRandom, newSeed } from '../../test/kit/random.ts'
import { type FormatFixture, formatFixtures } from '../../test/kit/transfer/format-fixtures.ts'
import { FormatError, type FileRow, type ParsedRow, RECORD_CHARACTERS_MAX } from './format.ts'
import { formats } from './formats.ts'

const NOW_MS = Date.parse('2026-11-27T00:00:00Z')

/** The rows of a file that arrives in these chunks, and the message of its FormatError. */
async function parse(format: string, chunks: readonly Uint8Array[]) {
  const rows: FileRow[] = []
  const found = formats.find(({ name }) => name === format)
  if (found === undefined) throw new Error(`no format ${format}`)
  async function* file() {
    yield* await Promise.resolve(chunks)
  }
  try {
    for await (const row of found.parse(file(), { nowMs: NOW_MS })) rows.push(row)
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    return { rows, error: error.message }
  }
  return { rows, error: undefined }
}

const bytesOf = (file: string) => new TextEncoder().encode(file)

/** What a row describes: its link, or its fault. */
const contentOf = (row: ParsedRow) => ('link' in row ? row.link : row.fault)

function expectRows(rows: readonly ParsedRow[], fixture: FormatFixture): void {
  const expected = fixture.rows.map((row): unknown =>
    row instanceof RegExp ? expect.stringMatching(row) : row,
  )
  expect(rows.map(contentOf)).toEqual(expected)
}

test('every format has a fixture', () => {
  const names = new Set(formatFixtures.map(({ format }) => format))
  expect(formats.map(({ name }) => name).filter((name) => !names.has(name))).toEqual([])
})

describe.each(formatFixtures)('$format, $about', (fixture) => {
  const { format, file } = fixture
  const bytes = bytesOf(file)

  test('yields its rows and their faults, with their numbers', async () => {
    const { rows, error } = await parse(format, [bytes])
    expect(error).toBeUndefined()
    expectRows(rows, fixture)
    const numbers = rows.map(({ row }) => row)
    expect(numbers[0]).toBe(1)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  })

  test('yields the same rows however the file is split', async () => {
    const whole = await parse(format, [bytes])
    const single = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1))
    expect(await parse(format, single)).toEqual(whole)
    const seed = newSeed()
    const random = createRandom(seed)
    for (let round = 0; round < 20; round++) {
      const cuts = [0, random.int(bytes.length), random.int(bytes.length), bytes.length]
      cuts.sort((a, b) => a - b)
      const chunks = cuts.slice(1).map((end, i) => bytes.subarray(cuts[i], end))
      expect([seed, await parse(format, chunks)]).toEqual([seed, whole])
    }
  })

  test('with CRLF instead of LF yields the same links', async () => {
    const crlf = file.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n')
    expectRows((await parse(format, [bytesOf(crlf)])).rows, fixture)
  })

  test('that is truncated yields only links that the whole file yields', async () => {
    const whole = (await parse(format, [bytes])).rows
    for (let length = 0; length < bytes.length; length += 3) {
      const { rows, error } = await parse(format, [bytes.subarray(0, length)])
      const complete = 'fault' in (rows.at(-1) ?? {}) ? rows.slice(0, -1) : rows
      expect([length, complete]).toEqual([length, whole.slice(0, complete.length)])
      const isJson = /^[{[]/.test(file) && format !== 'ndjson'
      const isPage = file.slice(0, length).trimEnd().length === file.indexOf('\n')
      if (isJson && !isPage) expect([length, error]).not.toEqual([length, undefined])
    }
  })

  test('that is not UTF-8 is rejected', async () => {
    const { error } = await parse(format, [bytes, Uint8Array.of(0xff)])
    expect(error).toMatch(/UTF-8/)
  })
})

test.each(formats.filter(({ name }) => name !== 'ndjson'))(
  '$name rejects a file of another format',
  async ({ name }) => {
    const others = ['', 'Unauthorized\n', '<!doctype html><title>A page</title>', '{"a":[{}]}', '3']
    for (const file of others) {
      const { rows, error } = await parse(name, [bytesOf(file)])
      expect([file, rows, error]).toEqual([file, [], expect.any(String)])
    }
  },
)

test('a page with an error among pages with links is rejected: links are missing', async () => {
  const page = '{"data":[{"address":"a","target":"https://example.com/"}]}'
  const { rows, error } = await parse('kutt', [bytesOf(`${page}{"error":"Too many"}${page}`)])
  expect([rows.length, error]).toEqual([1, expect.stringContaining('the list data')])
})

test('a last row of CSV without a line break is rejected if it may be incomplete', async () => {
  const faultsOf = async (file: string) => {
    const { rows } = await parse('csv', [bytesOf(file)])
    return rows.map((row) => ('fault' in row ? row.fault : 'link'))
  }
  const header = 'short_code,long_url\n'
  const cut = [expect.stringContaining('line 2 has no line break')]
  expect(await faultsOf(`${header}a,https://example.com/lo`)).toEqual(cut)
  expect(await faultsOf(`${header}a,https://example.com/lo\n`)).toEqual(['link'])
  expect(await faultsOf(`${header}a,"https://example.com/lo"`)).toEqual(['link'])
})

test.each([
  ['csv', 'short_code,long_url\r\n\na,"https://example.com/\n"\nb\nc,x\n', [3, 5, 6]],
  ['ndjson', '\n{}\n\nx\n', [2, 4]],
  ['kutt', '{"data":[\n{\n"address":1},\n\n{},{}]}\n{"data":[{}]}\n', [2, 5, 5, 6]],
])('the rows of %s have the numbers of their first lines', async (format, file, expected) => {
  const { rows, error } = await parse(format, [bytesOf(file)])
  expect([error, rows.map(({ line }) => line)]).toEqual([undefined, expected])
})

test('a link that Kutt has banned is disabled, even if its database has no booleans', async () => {
  const states = async (banned: unknown) => {
    const data = [{ address: 'a', target: 'https://example.com/', banned }]
    const { rows } = await parse('kutt', [bytesOf(JSON.stringify({ data }))])
    return rows.map((row) => ('link' in row ? row.link.state : row.fault))
  }
  for (const banned of [true, 1]) expect(await states(banned)).toEqual(['disabled'])
  for (const banned of [false, 0, null]) expect(await states(banned)).toEqual(['active'])
})

describe('a record that is too long', () => {
  const long = 'x'.repeat(RECORD_CHARACTERS_MAX + 1)
  const link = '{"short_code":"a","long_url":"https://example.com/"}'
  const kuttLink = '{"address":"a","target":"https://example.com/"}'
  test.each([
    ['ndjson', `"${long}"\n${link}\n`],
    ['csv', `short_code,long_url\n${long},x\na,https://example.com/\n`],
    ['kutt', `{"data":[{"address":"${long}"},${kuttLink}]}`],
  ])('is a fault, and the next one is read: %s', async (format, file) => {
    const { rows, error } = await parse(format, [bytesOf(file)])
    expect(error).toBeUndefined()
    expect(rows).toMatchObject([
      { row: 1, fault: expect.stringMatching(/more than 131072 characters/) as unknown },
      { row: 2, link: { short_code: 'a' } },
    ])
  })
})

test.each([
  ['a quote that is not closed', 'short_code,long_url\na,"https://example.com/\nb,c\n', /line 2/],
  ['characters after a quote', 'short_code,long_url\na,"https://a"b\n', /line 2.*closing quote/],
  ['an unknown column', 'short_code,long_url,expire_at\n', /"expire_at" is unknown/],
  ['a missing column', 'short_code\n', /long_url is missing/],
  ['a column twice', 'short_code,long_url,long_url\n', /twice/],
  ['too many fields', `short_code,long_url\n${','.repeat(200)}\n`, /more than 100 fields/],
  [
    'a very long quoted field',
    `short_code,long_url\na,"${'x'.repeat(200_000)}"\n`,
    /131072 characters/,
  ],
])('CSV with %s is rejected', async (_, file, expected) => {
  const { rows, error } = await parse('csv', [bytesOf(file)])
  expect(rows).toEqual([])
  expect(error).toMatch(expected)
})

test.each([
  ['ends inside a document', '{"data":[{"address":"a","target":"https://a"}', /ends inside/],
  ['has brackets that do not match', '{"data":[{]', /not valid JSON/],
  ['closes what is not open', '{"data":[]}}', /not valid JSON/],
  ['lists something else', '{"data":["a"]}', /not an object/],
  ['is nested deeply', '{"a":'.repeat(200), /nested too deeply/],
])('JSON that %s is rejected', async (_, file, expected) => {
  expect((await parse('kutt', [bytesOf(file)])).error).toMatch(expected)
})
