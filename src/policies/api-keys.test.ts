// API keys of Secrets: the values that are accepted, and the messages about the others.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseApiKeys } from '../create/api-keys.ts'
import { hashApiKeys, apiKeysOf } from './api-keys.ts'

const base64 = (data: Readonly<Record<string, string | Buffer>>) =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  )
const hashOf = (value: string) => `sha256:${createHash('sha256').update(value).digest('hex')}`
const secret = (name: string, labels: Readonly<Record<string, string>>, ...keys: string[]) => ({
  ...{ name, labels, problems: [] },
  hashes: keys.map(hashOf),
})

test('a trailing newline is removed, and every other value is hashed as it is', () => {
  const data = { a: 'k-1', b: 'k-2\n', c: 'k-3\r\n', d: 'k 4', e: 'ключ', f: 'k'.repeat(512) }
  expect(hashApiKeys(base64(data))).toEqual({
    hashes: ['k-1', 'k-2', 'k-3', 'k 4', 'ключ', data.f].map(hashOf),
    problems: [],
  })
})

test.each([
  ['', 'the value of bad is empty'],
  ['\n', 'the value of bad is empty'],
  ['k'.repeat(513), 'the value of bad has 513 bytes: at most 512 are allowed'],
  ['one\ntwo', 'the value of bad contains a line break or another control character, or'],
  ['k\n\n', 'the value of bad contains a line break'],
  [' k', 'control character, or starts or ends with a space or tab'],
  ['k\0', 'the value of bad contains a line break or another control character'],
])('the value %j is ignored with a message, and the others are used', (value, expected) => {
  const { hashes, problems } = hashApiKeys(base64({ bad: value, good: 'k' }))
  expect(hashes).toEqual([hashOf('k')])
  expect(problems).toEqual([expect.stringContaining(expected)])
})

test('a Secret has at most 1,000 keys', () => {
  const data = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`k${at}`, `v${at}`]))
  const { hashes, problems } = hashApiKeys(base64(data))
  expect(hashes).toHaveLength(1000)
  expect(problems).toEqual(['it has 1001 values, and only 1000 are used'])
})

const listLine = (name: string, key: string, more: object = {}) =>
  JSON.stringify({ name, creator_id: '42', hash: hashOf(key), ...more })

test('a list of API keys contributes its hashes, even those of expired keys', () => {
  const lines = [
    ...['# keys of the shop', '', listLine('a', 'k-1'), '  '],
    ...[`${listLine('b', 'k-2', { expires_at: '2020-01-01T00:00:00Z' })}\r`],
  ]
  const list = { 'api-keys.ndjson': lines.join('\n'), other: 'k-3' }
  expect(hashApiKeys(base64(list))).toEqual({
    hashes: ['k-1', 'k-2', 'k-3'].map(hashOf),
    problems: [],
  })
  expect(hashApiKeys({ 'api-keys.ndjson': '' })).toEqual({ hashes: [], problems: [] })
})

test('faulty lines of a list are a problem that shows their numbers, not their content', () => {
  const faulty = [
    ...['curtail_plain-key', 'null', '[]', '{"hash":7}', `{"hash":"${hashOf('k')}0"}`],
    ...[`{"hash":"${hashOf('k').toUpperCase()}"}`],
  ]
  const lines = [listLine('a', 'k-1'), ...faulty, listLine('b', 'k-2'), '']
  expect(hashApiKeys(base64({ 'a.ndjson': lines.join('\n') }))).toEqual({
    hashes: ['k-1', 'k-2'].map(hashOf),
    problems: ['the value of a.ndjson has no API key in 6 of its lines: 2, 3, 4 and others'],
  })
})

test('the hash of each line that the create pods use is used; comments are not a problem', () => {
  const characters = fc.constantFrom(' ', '\t', '\r', '\ufeff', '\u00a0', '\u2028', '\v', '')
  const around = fc.array(characters, { maxLength: 3 }).map((all) => all.join(''))
  const lines = fc.array(
    fc.tuple(around, fc.constantFrom('# a', listLine('a', 'k-1'), listLine('b', 'k-2')), around),
    { maxLength: 4 },
  )
  const listed = [`\ufeff${listLine('a', 'k-1')}`, ' \t# comment\r', '\t\r'].join('\n')
  expect(hashApiKeys(base64({ 'a.ndjson': listed }))).toEqual({
    hashes: [hashOf('k-1')],
    problems: [],
  })
  fc.assert(
    fc.property(lines, (all) => {
      const content = all.map((one) => one.join('')).join('\n')
      const { faults, entries } = parseApiKeys([{ path: '', content }])
      const { hashes, problems } = hashApiKeys(base64({ 'a.ndjson': content }))
      expect(new Set(hashes).size).toBe(entries)
      const others = faults.filter((fault) => !fault.includes('must be unique'))
      expect(problems).toHaveLength(others.length === 0 ? 0 : 1)
    }),
  )
})

test('at most 10,000 lines of a list are used, and a list counts as one value', () => {
  const many = Array.from({ length: 10_001 }, (_, at) => listLine(`k${at}`, `k${at}`))
  const others = Array.from({ length: 999 }, (_, at) => [`k${at}`, `v${at}`] as const)
  const all = { ...Object.fromEntries(others), 'a.ndjson': `x\n${many.slice(1).join('\n')}\n` }
  const { hashes, problems } = hashApiKeys(base64(all))
  expect(hashes).toHaveLength(9_999 + 999)
  expect(problems).toEqual([
    'the value of a.ndjson has 10001 lines, and only 10000 are used, and it has no API key in ' +
      '1 of its lines: 1',
  ])
})

test('for any list, only hashes of its lines are used, and no message shows its content', () => {
  const hidden = fc.stringMatching(/^[q-z]{8,20}$/)
  const lines = fc.array(
    fc.oneof(
      fc.record({ hash: hidden.map(hashOf), name: hidden }).map((line) => JSON.stringify(line)),
      fc.record({ hash: hidden }).map((line) => JSON.stringify(line)),
      hidden.map((line) => `# ${line}`),
      ...[hidden, fc.constant('')],
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(lines, (all) => {
      const { hashes, problems } = hashApiKeys(base64({ 'a.ndjson': all.join('\n') }))
      const expected = all.flatMap((line) => /^\{"hash":"(sha256:[^"]+)"/.exec(line)?.[1] ?? [])
      expect(hashes).toEqual(expected)
      expect(problems.join().replace('the value of a.ndjson has no', '')).not.toMatch(/[q-z]{8}/)
      expect(problems).toHaveLength(
        all.some((line) => line !== '' && !/^#|sha256:/.test(line)) ? 1 : 0,
      )
    }),
  )
})

test('an entry selects a Secret by its name, or Secrets by all of the labels', () => {
  const secrets = [
    secret('a', { tier: 'gold', team: 'x' }, 'k-2', 'k-1'),
    secret('b', { tier: 'gold' }, 'k-1', 'k-3'),
  ]
  const keysOf = (matchLabels: Readonly<Record<string, string>>) =>
    apiKeysOf({ key: 'api_key', secretSelector: { matchLabels } }, secrets, 3)
  const sorted = (...keys: string[]) => keys.map(hashOf).sort()
  const named = apiKeysOf({ key: 'api_key', secretRef: { name: 'b' } }, secrets, 3)
  expect(named).toEqual({ hashes: sorted('k-1', 'k-3') })
  expect(keysOf({ tier: 'gold' })).toEqual({ hashes: sorted('k-1', 'k-2', 'k-3') })
  expect(keysOf({ tier: 'gold', team: 'x' })).toEqual({ hashes: sorted('k-1', 'k-2') })
  expect(keysOf({ tier: 'silver' })).toEqual({
    hashes: [],
    problem: {
      reason: 'SecretNotFound',
      message: 'no Secret has the labels tier=silver,curtail.dev/api-keys=true',
    },
  })
})

test('if not all keys can fit, the first ones are selected', () => {
  const secrets = [secret('a', {}, 'k-2', 'k-1'), secret('b', {}, 'k-1', 'k-3')]
  const all = ['k-1', 'k-2', 'k-3'].map(hashOf).sort()
  const every = { key: 'api_key', secretSelector: { matchLabels: {} } }
  expect(apiKeysOf(every, secrets, 3)).toEqual({ hashes: all })
  expect(apiKeysOf(every, secrets, 2)).toEqual({ hashes: all.slice(0, 2), surplus: 1 })
})

test('a missing Secret and invalid values are problems with a message', () => {
  const entry = { key: 'api_key', secretRef: { name: 'partners' } }
  expect(apiKeysOf(entry, [], 3).problem).toEqual({
    reason: 'SecretNotFound',
    message: 'Secret "partners" not found, or it lacks the label curtail.dev/api-keys=true',
  })
  const data = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, '']))
  const partners = { name: 'partners', labels: {}, ...hashApiKeys(data) }
  expect(apiKeysOf(entry, [partners], 3).problem).toEqual({
    reason: 'KeysIgnored',
    message:
      'values are ignored: Secret partners: the value of a is empty; Secret partners: the value ' +
      'of b is empty; Secret partners: the value of c is empty; and others',
  })
})
