// The bounds of the format of keys and of their lines.
import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { type ApiKeyLine, parseApiKeys } from './api-keys.ts'

const KEY = `curtail_${'aB3-_'.repeat(8)}xyz`
const hashOf = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
const lineOf = (change: Readonly<Record<string, unknown>> = {}) =>
  JSON.stringify({ name: 'shop', creator_id: '42', hash: hashOf(KEY), ...change })
const parse = (content: string, onLine?: (line: ApiKeyLine) => void) =>
  parseApiKeys([{ path: 'keys', content }], onLine)

describe('a key', () => {
  test('has 43 of the characters of base64url after its prefix', () => {
    expect(parse(lineOf()).value.find(KEY, 0)).toMatchObject({ name: 'shop' })
  })

  test.each([
    ['one character less', KEY.slice(0, -1)],
    ['one character more', `${KEY}a`],
    ['a character before it', `x${KEY}`],
    ['another character', `${KEY.slice(0, -1)}.`],
    ['another prefix', KEY.replace('curtail_', 'curtail-')],
  ])('with %s is not found, although its hash is in the list', (_, key) => {
    const { value, faults } = parse(lineOf({ hash: hashOf(key) }))
    expect([faults, value.find(key, 0)]).toEqual([[], undefined])
  })
})

describe('a name', () => {
  test.each(['1', 'ab', '0a', '1-2', 'a1b', 'a--b', 'a'.repeat(63)])('can be %s', (name) => {
    expect(parse(lineOf({ name }))).toMatchObject({ entries: 1, faults: [] })
  })

  test.each(['', '-', '-a', 'a-', 'Shop', 'sHop', 'shoP', 'a.b', 'a b', ' a', 'a '])(
    'cannot be %j',
    (name) => {
      const { entries, faults } = parse(lineOf({ name }))
      expect([entries, faults]).toEqual([0, [expect.stringContaining('keys:1: name must be')]])
    },
  )
})

describe('a creator', () => {
  test.each(['1', '10', '9223372036854775807'])('can be %s', (id) => {
    expect(parse(lineOf({ creator_id: id })).value.find(KEY, 0)?.creatorId).toBe(BigInt(id))
  })

  test.each(['', '01', ' 42', '42 ', '+42', '0x2a', 'x', '4.2', '9223372036854775808'])(
    'cannot be %j',
    (id) => {
      const { entries, faults } = parse(lineOf({ creator_id: id }))
      expect([entries, faults]).toEqual([0, [expect.stringContaining('creator_id must be')]])
    },
  )
})

test.each([
  ['one digit less', hashOf(KEY).slice(0, -1)],
  ['one digit more', `${hashOf(KEY)}0`],
  ['a character before it', `x${hashOf(KEY)}`],
  ['a letter that is no digit', `${hashOf(KEY).slice(0, -1)}g`],
])('a hash with %s is a fault', (_, hash) => {
  const { entries, faults } = parse(lineOf({ hash }))
  expect([entries, faults]).toEqual([0, [expect.stringContaining('hash must be')]])
})

test('a line has at most 1024 characters, without the spaces around it', () => {
  const line = lineOf()
  const longest = line.replace('{', `{${' '.repeat(1024 - line.length)}`)
  expect(longest).toHaveLength(1024)
  expect(parse(`  ${longest}\t\r`)).toMatchObject({ entries: 1, faults: [] })
  expect(parse(longest.replace('{', '{ '))).toMatchObject({ entries: 0, faults: [{}] })
})

test('each line is reported with its number, its members and its fault', () => {
  const lines: ApiKeyLine[] = []
  parse(`# keys\n${lineOf()}\n\nx\n${lineOf({ name: 'blog' })}`, (line) => lines.push(line))
  const members = { name: 'shop', creator_id: 42n, hash: hashOf(KEY) }
  expect(lines).toEqual([
    { path: 'keys', number: 2, members, fault: undefined },
    { path: 'keys', number: 4, members: undefined, fault: expect.stringContaining('a line must') },
    {
      ...{ path: 'keys', number: 5, members: { ...members, name: 'blog' } },
      fault: expect.stringContaining('hash must be unique'),
    },
  ])
})
