// RATELIMIT_DOMAINS: bounds of its fields, and the namespaces of all grants.
import { expect, test } from '@jest/globals'
import { NAMESPACES_MAX, POLICIES_BYTES_MAX } from '../../policies/shares.ts'
import { namespacesOf, parseGrants } from './parse-grants.ts'

const grant = { domain: 'd', namespaces: ['n'] }
const parse = (...grants: readonly object[]) => parseGrants(JSON.stringify(grants))
const namespaces = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`)

test('keeps only the optional fields that are set', () => {
  const below = { key: 'k', value: 'v' }
  const complete = { ...grant, below, bytes: 1000, apiKeys: true }
  expect(parse(complete, { ...grant, apiKeys: false })).toEqual({
    grants: [complete, grant],
    problems: [],
  })
  const [, { ...second } = {}] = parse(complete, { ...grant, apiKeys: false }).grants
  expect(Object.keys(second)).toEqual(['domain', 'namespaces'])
})

test.each([
  ['a domain of 253 characters', { ...grant, domain: 'd'.repeat(253) }],
  ['100 namespaces', { ...grant, namespaces: namespaces(NAMESPACES_MAX) }],
  ['a short first entry', { ...grant, below: { key: 'k', value: 'v' } }],
  ['a long first entry', { ...grant, below: { key: 'k'.repeat(256), value: 'v'.repeat(512) } }],
  ['a share of 1000 bytes', { ...grant, bytes: 1000 }],
  ['the whole size as a share', { ...grant, bytes: POLICIES_BYTES_MAX }],
])('allows %s', (_name, given) => {
  expect(parse(given)).toEqual({ grants: [given], problems: [] })
})

test.each<readonly [object, string]>([
  [{ ...grant, domain: 'd'.repeat(254) }, '[0].domain'],
  [{ ...grant, namespaces: namespaces(NAMESPACES_MAX + 1) }, '[0].namespaces'],
  [{ ...grant, below: { key: '', value: 'v' } }, '[0].below.key'],
  [{ ...grant, below: { key: 'k', value: '' } }, '[0].below.value'],
  [{ ...grant, below: { key: 'k'.repeat(257), value: 'v' } }, '[0].below.key'],
  [{ ...grant, below: { key: 'k', value: 'v'.repeat(513) } }, '[0].below.value'],
  [{ ...grant, below: { key: 'k', value: 'v', other: 1 } }, '[0].below'],
  [{ ...grant, bytes: 999 }, '[0].bytes'],
  [{ ...grant, bytes: 1000.5 }, '[0].bytes'],
  [{ ...grant, bytes: POLICIES_BYTES_MAX + 1 }, '[0].bytes'],
])('rejects a fault with its place: %#', (given, place) => {
  const { grants, problems } = parse(given)
  expect([grants, problems.length]).toEqual([[], 1])
  expect(problems[0]?.slice(0, problems[0].indexOf(': '))).toBe(`RATELIMIT_DOMAINS${place}`)
})

test('allows 1000 grants, not more', () => {
  const all = Array.from({ length: 1000 }, () => grant)
  expect(parse(...all).problems).toEqual([])
  expect(parse(...all, grant).problems).toHaveLength(1)
})

test('reports each fault', () => {
  expect(parse({ ...grant, domain: '' }, { ...grant, bytes: 1 }).problems).toEqual([
    expect.stringMatching(/^RATELIMIT_DOMAINS\[0\]\.domain: /),
    expect.stringMatching(/^RATELIMIT_DOMAINS\[1\]\.bytes: /),
  ])
})

test('the shares may have the whole size, not more', () => {
  const half = POLICIES_BYTES_MAX / 2
  const shared = { ...grant, namespaces: ['a', 'b'] }
  expect(parse({ ...shared, bytes: half }).problems).toEqual([])
  expect(parse({ ...shared, bytes: half + 1 }).problems).toEqual([
    expect.stringContaining(`2 namespaces ${POLICIES_BYTES_MAX + 2} bytes`),
  ])
})

test('the namespaces of all grants are sorted, and have no duplicates', () => {
  const grants = [
    { ...grant, namespaces: ['c', 'a'] },
    { ...grant, namespaces: ['b', 'a'] },
  ]
  expect([namespacesOf(grants), namespacesOf([])]).toEqual([['a', 'b', 'c'], []])
})
