// The default algorithm of limits that set none.
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
  `f:4: the default algorithm ${name} cannot count this limit: fixed_window counts it`

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
