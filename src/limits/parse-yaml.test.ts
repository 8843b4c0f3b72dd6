// Parses YAML into a tree with line numbers: valid files, invalid files and the bounds.
import { describe, expect, test } from '@jest/globals'
import { FILE_BYTES_MAX, DEPTH_MAX, type YamlNode, parseYaml } from './parse-yaml.ts'
import { createDiagnostics } from './rule-fault.ts'

function parse(text: string): { tree: unknown; faults: string[] } {
  const diagnostics = createDiagnostics()
  const root = parseYaml(text, diagnostics.of('f'))
  const faults = diagnostics.faults().map(({ line, message }) => `${line}: ${message}`)
  return { tree: root === undefined ? undefined : plain(root), faults }
}

/** The tree as plain values; a key is its source text. */
function plain(node: YamlNode): unknown {
  if (node.kind === 'list') return node.items.map(plain)
  if (node.kind !== 'map') return node.kind === 'string' ? node.text : node.value
  return Object.fromEntries(
    node.entries.map(({ key, value }) => ['text' in key ? key.text : '?', plain(value)]),
  )
}

describe('parses', () => {
  test.each([
    ['an empty file', '', undefined],
    ['only comments', '# c\n', undefined],
    ['plain and quoted scalars', 'a: yes\nb: "yes"\nc: \'5\'\n', { a: true, b: 'yes', c: '5' }],
    ['block scalars', 'a: |\n  5\n', { a: '5\n' }],
    ['tags of YAML', 'a: !!str 5\nb: !!int "5"\nc: !!map {}\n', { a: '5', b: 5, c: {} }],
    ['anchors', 'a: &x [1]\nb: *x\n', { a: [1], b: [1] }],
    ['an anchor that is redefined', 'a: &x 1\nb: &x 2\nc: *x\n', { a: 1, b: 2, c: 2 }],
    ['merges', 'a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\n', { a: { k: 1, l: 2 }, b: { k: 3, l: 2 } }],
    [
      'merges of several mappings: the first takes precedence',
      'a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc: {<<: [*x, *y]}\n',
      { a: { k: 1 }, b: { k: 2, l: 3 }, c: { k: 1, l: 3 } },
    ],
    ['a quoted <<, which merges nothing', '"<<": {a: b}\n', { '<<': { a: 'b' } }],
    ['the tag of a string', 'a: ! 5\n', { a: '5' }],
    ['JSON', '{"a": ["b", null, 1.5]}', { a: ['b', undefined, 1.5] }],
  ])('%s', (_, text, tree) => {
    expect(parse(text)).toEqual({ tree, faults: [] })
  })

  test('line numbers of nodes', () => {
    const root = parseYaml('# c\n\na:\n  - b\n  -\n    c: d\n', createDiagnostics().of('f'))
    expect(root).toMatchObject({
      line: 3,
      entries: [{ value: { line: 4, items: [{ line: 4 }, { line: 6 }] } }],
    })
  })
})

describe('rejects', () => {
  const loading = 'error loading config file:'
  test.each([
    ['a duplicate key', 'a: 1\nb: 2\na: 3\n', [`3: ${loading} duplicate key 'a'`]],
    [
      'an undefined anchor',
      'a: *x\n',
      [`1: ${loading} yaml: line 1: unknown anchor 'x' referenced`],
    ],
    [
      'an anchor that contains itself',
      'a: &x\n  - *x\n',
      [`2: ${loading} yaml: line 2: unknown anchor 'x' referenced`],
    ],
    ['an unknown tag', 'a: !secret b\n', [`1: ${loading} the tag '!secret' is unknown`]],
    [
      'unknown tags of collections',
      'a: !x {}\nb: !y [1]\n',
      [`1: ${loading} the tag '!x' is unknown`, `2: ${loading} the tag '!y' is unknown`],
    ],
    [
      'a quote without its end',
      'a: "b',
      [`1: ${loading} yaml: line 1: found unexpected end of stream`],
    ],
    ['another bracket', '[a}', [`1: ${loading} yaml: line 1: Flow sequence must end with a ]`]],
    ['a brace without its end', 'a: {b\n', [expect.stringContaining('line 2: Flow map in block')]],
    [
      'a tag that does not match the value',
      '\na: !!int b\n',
      [`2: ${loading} the tag 'tag:yaml.org,2002:int' does not match 'b'`],
    ],
    ['a merge of a string', 'a: {<<: b}\n', [`1: ${loading} << must refer to a mapping`]],
    ['tabs', 'a:\n\tb: 1\n', [expect.stringMatching(/^2: .*Tabs are not allowed/)]],
  ])('%s', (_, text, faults) => {
    expect(parse(text).faults).toEqual(faults)
  })

  test('a file that is too large, without parsing it', () => {
    const text = `#${' '.repeat(FILE_BYTES_MAX)}`
    const message = `a file must have at most ${FILE_BYTES_MAX} bytes: it has ${FILE_BYTES_MAX + 1}`
    expect(parse(text)).toEqual({ tree: undefined, faults: [`1: ${message}`] })
  })

  test('a file has at most the maximum of bytes, and 20 faults of syntax', () => {
    const comment = `#${' '.repeat(FILE_BYTES_MAX - 1)}`
    expect(parse(comment)).toEqual({ tree: undefined, faults: [] })
    expect(parse('a: "\\q"\n'.repeat(30)).faults).toHaveLength(20)
  })

  test('the documents after the first one, with a warning', () => {
    const diagnostics = createDiagnostics()
    const root = parseYaml('a: 1\n---\n\nb: 2\n', diagnostics.of('f'))
    expect(root && plain(root)).toEqual({ a: 1 })
    const message = 'only the first YAML document of a file is read'
    expect(diagnostics.warnings()).toEqual([{ file: 'f', line: 2, message }])
  })

  test('keys that are mappings or lists only if they are in the same line', () => {
    expect(parse('? {a: 1}\n: x\n? {a: 1}\n: y\n? [b]\n: z\n').faults).toEqual([])
  })

  const tooDeep = `lists and mappings must be nested at most ${DEPTH_MAX} levels deep`
  test.each([
    ['deeply nested lists', `${'['.repeat(DEPTH_MAX + 1)}${']'.repeat(DEPTH_MAX + 1)}`],
    [
      'deeply nested aliases',
      Array.from({ length: 150 }, (_, i) => `x${i + 1}: &x${i + 1} [*x${i}]`)
        .toSpliced(0, 0, 'x0: &x0 a')
        .join('\n'),
    ],
    [
      'deeply nested aliases of mappings',
      Array.from({ length: 150 }, (_, i) => `x${i + 1}: &x${i + 1} {k: *x${i}}`)
        .toSpliced(0, 0, 'x0: &x0 a')
        .join('\n'),
    ],
  ])('%s', (_, text) => {
    const { faults } = parse(text)
    expect(faults[0]).toContain(tooDeep)
  })

  test('only what is nested too deep, in its own line', () => {
    const lists = (depth: number) => `${'[\n'.repeat(depth)}${']'.repeat(depth)}`
    expect(parse(lists(DEPTH_MAX)).faults).toEqual([])
    expect(parse(lists(DEPTH_MAX + 1)).faults).toEqual([`${DEPTH_MAX + 1}: ${loading} ${tooDeep}`])
  })

  test('lists nested so deep that the library fails', () => {
    expect(parse('['.repeat(100_000)).faults[0]).toMatch(/^1: error loading config file: yaml/)
  })
})

test('the CPU time of a mapping is linear in its number of keys', () => {
  const text = Array.from({ length: 60_000 }, (_, i) => `key${i}: v\n`).join('')
  const before = process.threadCpuUsage()
  expect(parse(text).faults).toEqual([])
  expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(10_000)
})

test('merges of merges are bounded', () => {
  const first = `x0: &x0 {${Array.from({ length: 2000 }, (_, i) => `k${i}: 1`).join(', ')}}\n`
  const more = Array.from({ length: 80 }, (_, i) => `x${i + 1}: &x${i + 1} {<<: *x${i}}\n`)
  expect(parse(first + more.join('')).faults[0]).toMatch(
    /^52: .*<< may merge at most 100000 entries/,
  )
})
