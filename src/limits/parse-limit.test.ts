// Limits: the default algorithm of those that set none, their windows and `replaces`.
import { expect, test } from '@jest/globals'
import { parseRules } from './parse-rules.ts'
import { renderFault } from './rule-fault.ts'
import { listRules } from './rule-tree.ts'

/** The name of the algorithm of a limit, and the warnings about it. */
function algorithmOf(fields: string, defaultAlgorithm: string): readonly string[] {
  const text = `domain: d\ndescriptors:\n- key: k\n  rate_limit: {${fields}}\n`
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false, defaultAlgorithm })
  if ('faults' in parsed) throw new Error(parsed.faults.map(renderFault).join())
  const names = listRules(parsed.rules).map(({ algorithm }) => algorithm.name)
  return [...names, ...parsed.warnings.map(renderFault)]
}

const PRIME = 999_999_937
const warning = (name: string) =>
  `f:4: the default algorithm ${name} does not support this limit: fixed_window is used`

test.each([
  ['sliding_window_log', 'unit: day, requests_per_unit: 10000', true],
  ['sliding_window_log', 'unit: day, requests_per_unit: 10001', false],
  ['leaky_bucket', 'unit: second, requests_per_unit: 7', true],
  ['token_bucket', `unit: day, requests_per_unit: ${String(PRIME)}`, false],
  ['fixed_window', `unit: day, requests_per_unit: ${String(PRIME)}`, true],
])('%s as the default counts {%s}: %p', (name, fields, isCounted) => {
  const expected = isCounted ? [name] : ['fixed_window', warning(name)]
  expect(algorithmOf(fields, name)).toEqual(expected)
})

test('the burst of a limit counts for the default', () => {
  const fields = `unit: day, requests_per_unit: ${String(PRIME)}, burst: 3`
  expect(algorithmOf(fields, 'token_bucket')).toEqual(['token_bucket'])
})

test('a limit with an algorithm does not use the default', () => {
  const fields = 'algorithm: leaky_bucket, unit: second, requests_per_unit: 5'
  expect(algorithmOf(fields, 'sliding_window_log')).toEqual(['leaky_bucket'])
  expect(algorithmOf('unlimited: true', 'sliding_window_log')).toEqual(['fixed_window'])
})

/** The first limit of a descriptor, or the faults. */
function limitOf(fields: string) {
  const text = `domain: d\ndescriptors:\n- key: k\n  rate_limit: {${fields}}\n`
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in parsed) return parsed.faults.map(({ message }) => message)
  return listRules(parsed.rules)[0]
}

test.each([
  ['1ms', 1000, undefined],
  ['30s', 30_000_000, undefined],
  ['1s', 1_000_000, 'SECOND'],
  ['60s', 60_000_000, 'MINUTE'],
  ['60m', 3_600_000_000, 'HOUR'],
  ['24h', 86_400_000_000, 'DAY'],
  ['366d', 366 * 86_400_000_000, undefined],
])('the window %s has %d µs and the unit %p', (window, windowUs, unit) => {
  const rule = limitOf(`window: ${window}, requests_per_unit: 1`)
  expect(rule).toMatchObject({ limit: { windowUs } })
  expect(rule).toHaveProperty('unit', unit)
})

test.each(['0s', '367d', '30', 'x30s', '30sx', '-1s', '1.5s', '30 s', '1234567890123ms'])(
  'the window %j is a fault',
  (window) => {
    const allowed = 'a whole number and ms, s, m, h or d, such as 30s, from 1ms to 366d'
    const message = `window must be ${allowed}: it is '${window}'`
    expect(limitOf(`window: "${window}", requests_per_unit: 1`)).toEqual([message])
  },
)

test('replaces has at most 100 names, which are neither empty nor its own', () => {
  const replacing = (names: readonly string[], name = '') => {
    const list = names.map((each) => `{name: "${each}"}`).join(', ')
    return limitOf(`unit: day, requests_per_unit: 1, name: "${name}", replaces: [${list}]`)
  }
  const names = Array.from({ length: 100 }, (_, at) => `n${String(at)}`)
  expect(replacing(names)).toMatchObject({ replaces: names })
  expect(replacing([...names, 'more'])).toEqual([
    'replaces must have at most 100 names: it has more',
  ])
  expect(replacing([''])).toEqual(['should not have an empty replaces entry'])
  expect(replacing(['n'], 'n')).toEqual(['replaces should not contain name of same descriptor'])
  expect(replacing(['n'], 'm')).toMatchObject({ name: 'm', replaces: ['n'] })
})

test('an unknown algorithm is a fault', () => {
  expect(limitOf('algorithm: x, unit: day, requests_per_unit: 1')).toEqual([
    expect.stringMatching(/^algorithm must be one of fixed_window, .*: it is 'x'$/),
  ])
})
