// The files of API keys: which lines contain a key, what is reported about the others, and which
// header values match a key.
import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { noApiKeys, parseApiKeys, parseApiKeySlices } from './api-keys.ts'

const NOW_MS = Date.UTC(2027, 0, 1)
const hashOf = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
const keyOf = (bytes: Uint8Array) => `curtail_${Buffer.from(bytes).toString('base64url')}`
const sampleKey = (first: number) => keyOf(Uint8Array.of(first, ...new Uint8Array(31)))
const lineOf = (change: Readonly<Record<string, unknown>> = {}) =>
  JSON.stringify({ name: 'shop', creator_id: '42', hash: hashOf(sampleKey(1)), ...change })
const parse = (...contents: readonly string[]) =>
  parseApiKeys(contents.map((content, at) => ({ path: `${at}.ndjson`, content })))

describe('find()', () => {
  test('returns the name and the creator of a key, and nothing for any other value', () => {
    const { value, entries, faults } = parse(lineOf())
    expect([entries, faults]).toEqual([1, []])
    expect(value.find(sampleKey(1), NOW_MS)).toMatchObject({ name: 'shop', creatorId: 42n })
    const key = sampleKey(1)
    const others = [sampleKey(2), key.toUpperCase(), ` ${key}`, `${key}\n`, `${key}, ${key}`, '']
    for (const other of [...others, hashOf(key), [key], undefined]) {
      expect(value.find(other, NOW_MS)).toBeUndefined()
    }
    expect(noApiKeys.find(key, NOW_MS)).toBeUndefined()
  })

  test('does not return a key whose hash is in the list, but which has another shape', () => {
    const { value } = parse(lineOf({ hash: hashOf('password') }))
    expect(value.find('password', NOW_MS)).toBeUndefined()
  })

  test.each(['2027-01-01T00:00:00Z', '2027-01-01T01:00:00.000+01:00'])(
    'returns a key until it expires: %s',
    (expires) => {
      const { value, faults } = parse(lineOf({ expires_at: expires }))
      expect(faults).toEqual([])
      expect(value.find(sampleKey(1), NOW_MS - 1)).toBeDefined()
      expect(value.find(sampleKey(1), NOW_MS)).toBeUndefined()
    },
  )
})

describe('a line', () => {
  test.each([
    ['1', 'a'],
    ['9223372036854775807', `a${'-'.repeat(61)}9`],
  ])('can have the creator %s and the name %s', (id, name) => {
    const { value, faults } = parse(lineOf({ creator_id: id, name }))
    expect(faults).toEqual([])
    expect(value.find(sampleKey(1), NOW_MS)).toMatchObject({ name, creatorId: BigInt(id) })
  })

  test('can be empty or a comment, and end with CRLF', () => {
    const content = `\ufeff# keys\r\n\r\n  # more\n${lineOf()}\r\n\n`
    expect(parse(content)).toMatchObject({ entries: 1, faults: [] })
  })

  const invalid: readonly (readonly [string, string, string])[] = [
    ['no JSON', 'shop', 'a line must be a JSON object with the members'],
    ['null', 'null', 'a line must be a JSON object with the members'],
    ['an array', '[]', 'a line must be a JSON object with the members'],
    ['truncated', lineOf().slice(0, -1), 'a line must be a JSON object with the members'],
    ['two objects', lineOf() + lineOf(), 'a line must be a JSON object with the members'],
    ['an unknown member', lineOf({ key: sampleKey(1) }), 'a line must be a JSON object'],
    ['no name', lineOf({ name: undefined }), 'name must be 1 to 63'],
    ['a long name', lineOf({ name: 'a'.repeat(64) }), 'name must be 1 to 63'],
    ['a key as its name', lineOf({ name: sampleKey(1) }), 'name must be 1 to 63'],
    ['a name with a hyphen at its end', lineOf({ name: 'a-' }), 'name must be 1 to 63'],
    ['a number as creator', lineOf({ creator_id: 42 }), 'creator_id must be an integer from 1'],
    ['creator 0', lineOf({ creator_id: '0' }), 'creator_id must be an integer from 1'],
    ['a negative creator', lineOf({ creator_id: '-1' }), 'creator_id must be an integer from 1'],
    ['creator 2^63', lineOf({ creator_id: String(2n ** 63n) }), 'to 9223372036854775807 as a str'],
    ['a key as its hash', lineOf({ hash: sampleKey(1) }), 'hash must be sha256: followed'],
    ['an upper-case hash', lineOf({ hash: `sha256:${'A'.repeat(64)}` }), 'hash must be sha256:'],
    ['a day that does not exist', lineOf({ expires_at: '2027-02-29T00:00:00Z' }), 'such as 2027'],
    ['a time without a zone', lineOf({ expires_at: '2027-01-01T00:00:00' }), 'expires_at must be'],
    ['too many characters', `${lineOf()}${' '.repeat(1024)}x`, 'must have at most 1024 characters'],
  ]
  test.each(invalid)('that has %s is ignored and reported', (_, line, fault) => {
    const { value, entries, faults } = parse(`\n${line}\n${lineOf({ name: 'other' })}`)
    expect(entries).toBe(1)
    expect(value.find(sampleKey(1), NOW_MS)).toMatchObject({ name: 'other' })
    expect(faults).toEqual([expect.stringMatching(/^0\.ndjson:2: /)])
    expect(faults[0]).toContain(fault)
    expect(faults[0]).not.toMatch(/curtail_|[0-9a-f]{64}/)
  })

  test.each([
    [
      'name',
      lineOf({ hash: hashOf(sampleKey(2)), creator_id: '7' }),
      'name must be unique: an earlier line has the same name',
    ],
    ['hash', lineOf({ name: 'other', creator_id: '7' }), 'hash must be unique'],
  ])('with the %s of an earlier line, even in another file, is a fault', (_, line, fault) => {
    for (const [contents, place] of [
      [[`${lineOf()}\n${line}`], '0.ndjson:2'],
      [[lineOf(), line], '1.ndjson:1'],
    ] as const) {
      const { value, entries, faults } = parse(...contents)
      expect([entries, faults]).toEqual([1, [expect.stringContaining(`${place}: ${fault}`)]])
      expect(value.find(sampleKey(1), NOW_MS)).toMatchObject({ creatorId: 42n })
      expect(value.find(sampleKey(2), NOW_MS)).toBeUndefined()
    }
  })
})

test('at most 100,000 lines are read; one fault reports the rest', () => {
  const { entries, faults } = parse(`${lineOf()}\n`, 'x\n'.repeat(100_001))
  expect(entries).toBe(1)
  expect(faults).toHaveLength(100_000)
  expect(faults.at(-1)).toBe(
    '1.ndjson:100000: at most 100000 lines are read, comments not counted: the rest is ignored',
  )
})

test.each([
  ['one file', 1],
  ['50 files', 50],
])('slices have at most 500 lines, even if all are comments, in %s', (_, count) => {
  const file = { path: '', content: '#\n'.repeat(5000 / count) }
  expect([...parseApiKeySlices(Array.from({ length: count }, () => file))]).toHaveLength(10)
})

interface ListedKey {
  readonly bytes: Uint8Array
  readonly creatorId: bigint
  readonly expiresAtMs: number | undefined
}

const garbage = fc
  .oneof(fc.string(), fc.json(), fc.constant(lineOf({ hash: sampleKey(9) })))
  .map((line) => line.replace(/[\r\n\u2028\u2029]/g, ' '))
  .filter((line) => line.trim() !== '' && !line.trim().startsWith('#'))
const listed = fc.record<ListedKey>({
  bytes: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  creatorId: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
  expiresAtMs: fc.option(fc.integer({ min: 0, max: 2 * NOW_MS }), { nil: undefined }),
})

test('in any files, a valid line is a key, and others are faults that do not show the line', () => {
  const files = fc.array(fc.array(fc.oneof(garbage, listed, fc.constant('# comment'))))
  fc.assert(
    fc.property(files, (given) => {
      const keys: (string | ListedKey)[] = given.flat()
      const named = new Map(keys.map((key, at) => [key, `key-${at}`]))
      const contents = given.map((lines) =>
        lines.map((line) => (typeof line === 'string' ? line : listedLine(line, named.get(line)))),
      )
      const { value, entries, faults } = parse(...contents.map((lines) => lines.join('\n')))
      const lines = contents.flat().filter((line) => line !== '# comment')
      expect(entries + faults.length).toBe(lines.length)
      const seen = new Set<string>()
      for (const key of keys) {
        if (typeof key === 'string') continue
        const sent = keyOf(key.bytes)
        if (seen.has(sent)) continue // the hash of an earlier line
        seen.add(sent)
        const isValid = (key.expiresAtMs ?? Infinity) > NOW_MS
        const { name, creatorId } = value.find(sent, NOW_MS) ?? {}
        expect([name, creatorId]).toEqual(
          isValid ? [named.get(key), key.creatorId] : [undefined, undefined],
        )
      }
      expect(entries).toBe(seen.size)
      for (const fault of faults) {
        expect(fault).toMatch(/^\d+\.ndjson:\d+: (a line|name|creator_id|hash|expires_at) must /)
        expect(fault).not.toMatch(/curtail_|[0-9a-f]{64}/)
      }
    }),
  )
})

function listedLine(
  { bytes, creatorId, expiresAtMs }: ListedKey,
  name: string | undefined,
): string {
  return JSON.stringify({
    name,
    creator_id: String(creatorId),
    hash: hashOf(keyOf(bytes)),
    ...(expiresAtMs !== undefined && { expires_at: new Date(expiresAtMs).toISOString() }),
  })
}
