// Faults in the structure and size of rule files, and the list of faults.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { faultFields, FAULTS_KEPT_MAX, renderFault } from './rule-fault.ts'
import { DEPTH_MAX, RULE_DESCRIPTORS_MAX, parseRules, STRING_LENGTH_MAX } from './parse-rules.ts'
import { faultsOf, file, limit } from '../../test/kit/rules-file.ts'

describe('faults in the structure', () => {
  const loading = 'error loading config file:'
  test.each([
    ['a file that is a list', '- a\n', [`1: ${loading} a rules file must be a mapping`]],
    [
      'a domain that is a mapping',
      'domain: {key: a}\n',
      [
        `1: ${loading} domain must be a string: it is a mapping`,
        '1: config file cannot have empty domain',
      ],
    ],
    [
      'descriptors that are not a list',
      'domain: d\ndescriptors: some\n',
      [`2: ${loading} descriptors must be a list: it is a string 'some'`],
    ],
    [
      'a limit that is not a mapping',
      file('rate_limit: 5'),
      [`4: ${loading} rate_limit must be a mapping or a list of mappings: it is a number '5'`],
    ],
    [
      'a flag in quotes',
      file('shadow_mode: "true"'),
      [`4: ${loading} shadow_mode must be true or false: it is a string 'true'`],
    ],
    ...['-1', '4294967296', '"5"'].map((count): [string, string, string[]] => [
      `${count} requests`,
      limit('unit: day', `requests_per_unit: ${count}`),
      [
        `6: ${loading} requests_per_unit must be a whole number from 0 to 4294967295: ` +
          `it is ${count.startsWith('"') ? "a string '5'" : `a number '${count}'`}`,
      ],
    ]),
    [
      'metadata that is a string',
      file('metadata: some'),
      [`4: ${loading} metadata must be a mapping: it is a string 'some'`],
    ],
    [
      'metadata that JSON cannot represent',
      file('metadata:', '  a: .nan'),
      ["5: error parsing metadata: '.nan' is not a JSON number"],
    ],
    [
      'a string that is too long',
      file(`value: ${'v'.repeat(STRING_LENGTH_MAX + 1)}`),
      ['4: value must have at most 1024 characters: it has 1025'],
    ],
  ])('%s', (_, text, faults) => {
    expect(faultsOf(text)).toEqual(faults)
  })
})

test('all faults of all files are listed together, in the order of their lines', () => {
  const parsed = parseRules(
    [
      { name: 'b', text: limit('unit: foo', 'burst: 2', 'nonsense: 1') + '- value: x\n' },
      { name: 'a', text: 'descriptors: 5\n' },
    ],
    { mergeDomains: false },
  )
  if (!('faults' in parsed)) throw new Error('loaded')
  expect(parsed.faults.map(renderFault)).toEqual([
    "b:5: invalid rate limit unit 'foo'",
    "b:6: burst is only for token_bucket: the algorithm is 'fixed_window'",
    "b:7: config error, unknown key 'nonsense'",
    'b:8: descriptor has empty key',
    'a:1: config file cannot have empty domain',
    "a:1: error loading config file: descriptors must be a list: it is a number '5'",
  ])
})

test('a probable mistake that envoyproxy/ratelimit accepts is a warning', () => {
  const text = limit('unit: day', 'shadow_mode: true') + '---\ndomain: other\n'
  const parsed = parseRules([{ name: 'f', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error('rejected')
  expect(parsed.warnings.map(renderFault)).toEqual([
    'f:5: requests_per_unit is missing, which means 0: every request is denied',
    "f:6: key 'shadow_mode' is allowed only in a descriptor: it is ignored",
    'f:7: only the first YAML document of a file is read',
  ])
  expect([...parsed.rules.keys()]).toEqual(['d'])
})

test('any input results in rules or faults', () => {
  const words = ['domain', 'descriptors', 'key', 'rate_limit', 'unit', 'metadata', 'day', 'a*', '5']
  const marks = [
    ': ',
    ':',
    '\n',
    '- ',
    '  ',
    '[',
    ']',
    '{',
    '}',
    ', ',
    '&a ',
    '*a',
    '<<: ',
    '? ',
    '"',
  ]
  const others = [
    "'",
    '|\n',
    '!!int ',
    '!x ',
    '---\n',
    '%',
    '@',
    '#',
    '\t',
    '\0',
    '1.5',
    '~',
    '\u{1f600}',
  ]
  const tokens = fc.array(fc.constantFrom(...words, ...marks, ...others), { maxLength: 40 })
  fc.assert(
    fc.property(tokens, fc.boolean(), (sequence, isBelow) => {
      const text = `${isBelow ? 'domain: d\ndescriptors:\n- key: k\n  ' : ''}${sequence.join('')}`
      const parsed = parseRules([{ name: 'f', text }], { mergeDomains: true })
      if ('faults' in parsed) expect(parsed.faults[0]?.line).toBeGreaterThan(0)
      else expect(parsed.rules.size).toBe(1)
    }),
    { numRuns: 5000 },
  )
})

describe('bounds', () => {
  test('descriptors can be nested up to a maximum depth', () => {
    const nested = (depth: number): string =>
      `{key: k${depth > 1 ? `, descriptors: [${nested(depth - 1)}]` : ''}}`
    const text = (depth: number) => `domain: d\ndescriptors: [${nested(depth)}]\n`
    expect(faultsOf(text(DEPTH_MAX))).toEqual([])
    expect(faultsOf(text(DEPTH_MAX + 1))).toEqual([
      `2: descriptors must be nested at most ${DEPTH_MAX} levels deep`,
    ])
  })

  const listOf = (key: string, count: number, item: (at: number) => string) =>
    `${key}: [${Array.from({ length: count }, (_, at) => item(at)).join(', ')}]`
  const replaces = (count: number) =>
    limit(
      'unit: day',
      'requests_per_unit: 1',
      listOf('replaces', count, (at) => `{name: r${at}}`),
    )
  const log = (requests: number) =>
    limit('algorithm: sliding_window_log', 'unit: day', `requests_per_unit: ${requests}`)

  test.each([
    ['limits', 8, (n: number) => file(listOf('rate_limit', n, () => '{unlimited: true}'))],
    ['names in replaces', 100, replaces],
    ['metadata', 1000, (n: number) => file(`metadata: {${listOf('a', n - 1, () => '1')}}`)],
    ['characters', STRING_LENGTH_MAX, (n: number) => file(`value: ${'v'.repeat(n)}`)],
    ['requests', 2 ** 32 - 1, (n: number) => limit('unit: day', `requests_per_unit: ${n}`)],
    ['requests of a log', 10_000, log],
  ])('%s: exactly %i are accepted, one more is a fault', (_, max, text) => {
    expect(faultsOf(text(max))).toEqual([])
    expect(faultsOf(text(max + 1))).toHaveLength(1)
  })

  test('aliases cannot exceed the maximum number of descriptors', () => {
    const leaf = '- &x0 {key: leaf}\n'
    const layers = Array.from({ length: 24 }, (_, i) => {
      const twice = `[{key: a, descriptors: [*x${i}]}, {key: b, descriptors: [*x${i}]}]`
      return `- &x${i + 1} {key: l${i}, descriptors: ${twice}}\n`
    })
    expect(faultsOf(`domain: d\ndescriptors:\n${leaf}${layers.join('')}`)).toEqual([
      expect.stringContaining(
        `all files must have at most ${RULE_DESCRIPTORS_MAX} descriptors in total`,
      ),
    ])
  })

  test('aliases cannot exceed the maximum size of metadata', () => {
    const layers = Array.from({ length: 15 }, (_, i) => `x${i + 1}: &x${i + 1} [*x${i}, *x${i}]`)
    const lines = ['metadata:', '  x0: &x0 [1]', ...layers.map((line) => `  ${line}`)]
    expect(faultsOf(file(...lines))).toEqual([
      '5: error parsing metadata: metadata must have at most 1000 values: it has more',
    ])
  })

  test('a list is checked once, even if many aliases refer to it', () => {
    const faults = faultsOf(file('x: &list [1]', 'y: *list', 'z: *list'))
    const isOfList = (fault: string) => fault.includes('list of type other than map')
    expect(faults.filter(isOfList)).toHaveLength(1)
  })

  test('messages are truncated', () => {
    const layers = Array.from({ length: 30 }, (_, i) => `- &x${i + 1} [*x${i}, *x${i}]\n`)
    const faults = faultsOf(`domain: &x0 ${'d'.repeat(100_000)}\ndescriptors:\n${layers.join('')}`)
    expect(faults).toHaveLength(31)
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(1100)
  })

  test.each([
    [[FAULTS_KEPT_MAX], FAULTS_KEPT_MAX, undefined],
    [[FAULTS_KEPT_MAX + 1], FAULTS_KEPT_MAX + 1, 'b.yaml:1003: faults that are not listed: 1'],
    [[FAULTS_KEPT_MAX + 500], FAULTS_KEPT_MAX + 1, 'b.yaml:1003: faults that are not listed: 500'],
    [[800, 700, 1500], FAULTS_KEPT_MAX + 1, 'c.yaml:203: faults that are not listed: 2000'],
  ])('of files with %j faults, %i are listed, and all are counted', (counts, listed, last) => {
    const files = counts.map((count, at) => ({
      name: `${'bcd'.charAt(at)}.yaml`,
      text: `domain: ${'bcd'.charAt(at)}\ndescriptors:\n${'- value: v\n'.repeat(count)}`,
    }))
    const parsed = parseRules(files, { mergeDomains: false })
    const faults = 'faults' in parsed ? parsed.faults : []
    expect(faults).toHaveLength(listed)
    expect(faultFields(faults).faultCount).toBe(counts.reduce((sum, count) => sum + count))
    if (last !== undefined) expect(faults.map(renderFault).at(-1)).toBe(last)
  })
})
