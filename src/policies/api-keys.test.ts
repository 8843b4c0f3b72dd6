// API keys of Secrets: the values that are accepted, and the messages about the others.
import { createHash } from 'node:crypto'
import { expect, test } from '@jest/globals'
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

test('of more keys than can fit, the first ones are selected', () => {
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
