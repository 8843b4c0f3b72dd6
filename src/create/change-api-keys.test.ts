// Changes of the list of API keys, verified with the parser of the create pods.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ListDocument } from '../process/list-target.ts'
import { CREATOR_ID_MAX, parseApiKeys } from './api-keys.ts'
import {
  addApiKey,
  generateApiKey,
  generateCreatorId,
  listApiKeys,
  type NewApiKey,
  revokeApiKeys,
} from './change-api-keys.ts'

const NOW_MS = Date.parse('2026-06-01T00:00:00Z')
const documentOf = (content: string, bytesMax = 10_000): ListDocument => ({
  ...{ name: 'keys', content, bytesMax },
})
const newKey = (name: string, given: Partial<NewApiKey> = {}): NewApiKey => ({
  ...{ name, creatorId: 42n, expiresAt: undefined, key: generateApiKey(), ...given },
})
const contentAfter = (content: string, added: NewApiKey): string => {
  const contents = addApiKey([documentOf(content)], added)
  if (typeof contents === 'string') throw new Error(contents)
  return contents.get('keys') ?? ''
}
const parse = (content: string) => parseApiKeys([{ path: 'keys', content }])

test('the service finds each added key by its value only, and the list does not contain it', () => {
  const names = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
  const ids = fc.oneof(fc.bigInt(1n, CREATOR_ID_MAX), fc.constantFrom(1n, CREATOR_ID_MAX))
  fc.assert(
    fc.property(fc.uniqueArray(names, { minLength: 1, maxLength: 5 }), ids, (all, id) => {
      let content = '# keys\n'
      for (const name of all) {
        const added = newKey(name, { creatorId: id, expiresAt: '2027-01-01T00:00:00Z' })
        content = contentAfter(content, added)
        const { value, entries, faults } = parse(content)
        expect(value.find(added.key, NOW_MS)).toMatchObject({ name, creatorId: id })
        expect(value.find(added.key, Date.parse('2027-01-01T00:00:00Z'))).toBeUndefined()
        expect([entries, faults]).toEqual([all.indexOf(name) + 1, []])
        expect(content).not.toContain(added.key.slice('curtail_'.length))
      }
    }),
    { numRuns: 50 },
  )
})

test('generated keys and ids differ, and are in their range', () => {
  const keys = new Set(Array.from({ length: 100 }, generateApiKey))
  const ids = Array.from({ length: 100 }, generateCreatorId)
  expect([keys.size, new Set(ids).size]).toEqual([100, 100])
  for (const key of keys) expect(key).toMatch(/^curtail_[\w-]{43}$/)
  for (const id of ids) expect(id >= 1n && id <= CREATOR_ID_MAX).toBe(true)
})

test('a name exists if any line has it, even a faulty one in another document', () => {
  const documents = [documentOf('{"name":"shop"}'), { ...documentOf(''), name: 'other' }]
  expect(addApiKey(documents, newKey('shop'))).toBe('exists')
  expect(addApiKey(documents, newKey('shop-2'))).toBeInstanceOf(Map)
})

test('a key that does not fit, or that the service would ignore, is not added', () => {
  expect(addApiKey([documentOf('', 100)], newKey('shop'))).toBe('full')
  const hash = (at: number) => `sha256:${at.toString(16).padStart(64, '0')}`
  const many = Array.from({ length: 100_000 }, (_, at) =>
    JSON.stringify({ name: `k${at}`, creator_id: '1', hash: hash(at) }),
  )
  expect(addApiKey([documentOf(many.join('\n'), Infinity)], newKey('shop'))).toBe('unusable')
})

test('revoking removes all lines with the names, and keeps the others and the comments', () => {
  const [one, two, three] = ['one', 'two', 'three'].map((name) => newKey(name)) as [
    NewApiKey,
    NewApiKey,
    NewApiKey,
  ]
  const content = [one, two, three].reduce(contentAfter, '# keys\n\nnot JSON\nnull\n')
  const { contents, found } = revokeApiKeys([documentOf(content)], ['one', 'three', 'four'])
  expect([...found]).toEqual(['one', 'three'])
  const after = contents.get('keys') ?? ''
  expect(after).toMatch(/^# keys\n\nnot JSON\nnull\n\{"name":"two"[^\n]*\n$/)
  const { value } = parse(after)
  expect([one, two, three].map(({ key }) => value.find(key, NOW_MS)?.name)).toEqual([
    ...[undefined, 'two', undefined],
  ])
  expect(revokeApiKeys([documentOf(content)], ['four']).contents).toEqual(new Map())
})

test('the list shows valid lines without their hashes, and the faults of ignored lines', () => {
  const added = [
    newKey('expired', { expiresAt: '2026-06-01T00:00:00Z' }),
    newKey('active', { expiresAt: '2026-06-01T00:00:01Z', creatorId: CREATOR_ID_MAX }),
    newKey('forever'),
  ]
  const content = added.reduce(contentAfter, '')
  const faulty = '{"name":"active"}\n# comment\n'
  const other = contentAfter('', newKey('active', { creatorId: 7n }))
  const { keys, faults } = listApiKeys([documentOf(faulty + content + other)], NOW_MS)
  expect(keys).toEqual([
    { name: 'expired', creator_id: '42', expires_at: '2026-06-01T00:00:00Z', state: 'expired' },
    {
      ...{ name: 'active', creator_id: '9223372036854775807', state: 'active' },
      expires_at: '2026-06-01T00:00:01Z',
    },
    { name: 'forever', creator_id: '42', expires_at: null, state: 'active' },
    { name: 'active', creator_id: '7', expires_at: null, state: 'ignored' },
  ])
  expect(faults).toHaveLength(2)
  expect(faults[0]).toMatch(/^keys:1: /)
})

test('if several documents have a line with the same name, the service uses the first file', () => {
  const names = ['one.ndjson', 'two.ndjson', 'Secret n/one', 'Secret n/one-2']
  const files = names.map((name) => name.replace(/^Secret n\/(.*)/, '$1.ndjson'))
  for (const [first, second] of [
    [1, 0],
    [2, 3],
  ] as const) {
    const documents = [first, second].map((at) => ({
      ...documentOf(contentAfter('', newKey('shop', { creatorId: BigInt(at) + 1n }))),
      name: names[at] ?? '',
    }))
    const { keys } = listApiKeys(documents, NOW_MS)
    const used = [first, second].sort((a, b) => ((files[a] ?? '') < (files[b] ?? '') ? -1 : 1))[0]
    expect(keys.map(({ state }) => state)).toEqual(['active', 'ignored'])
    expect(keys[0]?.creator_id).toBe(String((used ?? 0) + 1))
  }
})

const ignoredAround = fc.constantFrom(' ', '\t', '\r', '')
const anyAround = fc.constantFrom('\ufeff', '\u00a0', '\u2028', '\v', '\f', '#')
const around = fc
  .array(fc.oneof({ arbitrary: ignoredAround, weight: 9 }, anyAround), { maxLength: 4 })
  .map((characters) => characters.join(''))

test('each line that the service uses is listed, and can be revoked', () => {
  let used = 0
  fc.assert(
    fc.property(around, around, around, (before, after, start) => {
      const line = contentAfter('', newKey('shop')).trimEnd()
      for (const content of [`${before}${line}${after}`, `# keys\n${start}${line}${after}\n`]) {
        const documents = [documentOf(content)]
        const { entries, faults } = parse(content)
        const isListed = listApiKeys(documents, NOW_MS).keys.some(({ name }) => name === 'shop')
        const { contents, found } = revokeApiKeys(documents, ['shop'])
        expect([isListed, found.size]).toEqual([entries === 1, entries])
        expect(listApiKeys(documents, NOW_MS).faults).toEqual(faults)
        if (entries === 0) continue
        used++
        expect(contents.get('keys')).not.toContain('sha256')
        expect(addApiKey(documents, newKey('shop'))).toBe('exists')
      }
    }),
  )
  expect(used).toBeGreaterThan(20)
})

test('revoking removes the copies of a key too, and returns their names', () => {
  const key = generateApiKey()
  const creatorId = 7n
  const lines = [newKey('a', { key }), newKey('b', { key, creatorId }), newKey('c')].map((one) =>
    contentAfter('', one),
  )
  const documents = [documentOf(lines.join(''))]
  const { keys } = listApiKeys(documents, NOW_MS)
  expect(keys.map(({ state }) => state)).toEqual(['active', 'ignored', 'active'])
  for (const name of ['a', 'b']) {
    const { contents, found, copies, creatorIds } = revokeApiKeys(documents, [name])
    expect(contents.get('keys')).toBe(lines[2])
    expect(Object.fromEntries(creatorIds)).toEqual({ a: '42', b: '7' })
    expect([[...found], [...copies]]).toEqual([[name], [name === 'a' ? 'b' : 'a']])
  }
  const { hashes } = revokeApiKeys([documentOf(lines[0] ?? '')], ['a'])
  const rest = revokeApiKeys([documentOf(lines[1] ?? '')], ['a'], hashes)
  expect([rest.contents.get('keys'), [...rest.copies]]).toEqual(['', ['b']])
})

test('whatever the list contains, revoking makes no key valid, and keeps the other keys', () => {
  const keys = Array.from({ length: 4 }, generateApiKey)
  const names = fc.constantFrom('a', 'b', 'c', 'd')
  const lines = fc.array(fc.tuple(names, fc.integer({ min: 0, max: 3 })), { maxLength: 8 })
  fc.assert(
    fc.property(lines, fc.uniqueArray(names, { minLength: 1, maxLength: 2 }), (given, revoked) => {
      const content = given
        .map(([name, at]) => contentAfter('', newKey(name, { key: keys[at] ?? '' })))
        .join('')
      const { contents } = revokeApiKeys([documentOf(content)], revoked)
      const before = parse(content).value
      const after = parse(contents.get('keys') ?? content).value
      const removed = given.filter(([name]) => revoked.includes(name)).map(([, at]) => at)
      for (const [at, key] of keys.entries()) {
        const expected = removed.includes(at) ? undefined : before.find(key, NOW_MS)
        expect(after.find(key, NOW_MS)?.name).toBe(expected?.name)
      }
    }),
    { numRuns: 500 },
  )
})
