// The parser of basic YAML builds the same tree as the parser of all YAML, and leaves any other
// input to it.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseBasicYaml } from './parse-basic-yaml.ts'
import { FILE_BYTES_MAX, parseYaml } from './parse-yaml.ts'
import { createDiagnostics } from './rule-fault.ts'

/** The tree of the parser of all YAML; `undefined` if it reports anything. */
function parseAll(text: string) {
  const diagnostics = createDiagnostics()
  const tree = parseYaml(text, diagnostics.of('f'))
  const reports = [...diagnostics.faults(), ...diagnostics.warnings()]
  return reports.length > 0 ? undefined : tree
}

const mapping = (size: number) =>
  Array.from({ length: size }, (_, at) => `k${String(at)}: ${String(at)}\n`).join('')

describe('parseBasicYaml() parses', () => {
  test.each([
    ['a block mapping', 'a: 1\nb: x y\n'],
    ['empty values', 'a:\n\nb: # c\n  # d\nc:'],
    ['lists', 'a:\n- 1\n- b: 2\n  c: 3\nd:\n  - - e\n'],
    ['flow collections', 'a: {b: [1, "c", d e], f: {}}\ng: [\n  1,\n  2\n  ]\n'],
    ['JSON', '{"a": "b:c",\n "d": [\n  1\n ],\n "e":null}'],
    ['quotes', `a: 'b # c'\n"d": "e: f"\n`],
    ['comments', '# a\nb: c # d\n# e\nf: # g\n  # h\n  i: j\n    # k\n'],
    ['a value after a comment with a space', 'a:\n  # b\n  c\n'],
    ['a value after an empty comment', 'a:\n  #\n  c\n'],
    ['a quoted value after any comment', 'a:\n  #b\n  "c"\n'],
    ['percent signs and dots in values', 'a: 5%\nb: c...\n'],
    ['the maximum of bytes', `a: b #${' '.repeat(FILE_BYTES_MAX - 6)}`],
    ['a value after an empty line', 'a:\n\n  c\n'],
    ['a document marker', '---\na: b\n'],
    ['values of the grammar', 'a: yes\nb: 012\nc: 1.5\nd: 2026-11-22\ne: ~\nf: null\ng: "5"\n'],
    ['wildcards and queries', 'a: "*"\nb: /x/*?y=1&z=!2\nc: sha256:0a\n'],
    ['other languages', 'a: é\u{1f600} ü\n'],
    ['a scalar', 'a b'],
    ['a large mapping', mapping(20)],
  ])('%s', (_, text) => {
    const tree = parseBasicYaml(text)
    expect(tree).toBeDefined()
    expect(tree).toEqual(parseAll(text))
  })
})

describe('parseBasicYaml() leaves to the parser of all YAML', () => {
  test.each([
    ['an empty file', ''],
    ['a fault of syntax', 'a: [1\n'],
    ['two documents', 'a: 1\n---\nb: 2\n'],
    ['an end of the document', 'a: 1\n...\n'],
    ['an indented first line', ' --- a'],
    ['a start with the end of a document', '...\na: 1\n'],
    ['a directive', '%YAML 1.2\n---\na: 1\n'],
    ['anchors and aliases', 'a: &x 1\nb: *x\n'],
    ['an alias without an anchor', 'a: *x\n'],
    ['merges', 'a: {<<: {b: 1}}\n'],
    ['a key after an item in the same line', "d:\n- 'a'b: c\n"],
    ['a value after a comment', 'a:\n  -\n  #b\n    c\n  - "d: e"\n'],
    ['a value after a comment without a space', 'a:\n  #b\n  c\n'],
    ['a value after such a comment and an empty line', 'a:\n  #b\n\n  # d\n  c\n'],
    ['tags', 'a: !!str 1\n'],
    ['tabs', 'a:\t1\n'],
    ['carriage returns', 'a: 1\r\n'],
    ['escapes', 'a: "\\n"\n'],
    ['quotes in quotes', "a: 'it''s'\n"],
    ['block scalars', 'a: |\n  b\n'],
    ['strings of several lines', 'a: b\n  c\n'],
    ['explicit keys', '? a\n: b\n'],
    ['keys without a value', '{a}\n'],
    ['empty values in a flow collection', '{a: , b: 1}\n'],
    ['pairs in a list', '[a: b]\n'],
    ['collections as keys', '{[a]: b}\n'],
    ['duplicate keys', 'a: 1\nb: 2\na: 3\n'],
    ['duplicate keys in a large mapping', `${mapping(20)}k3: 1\n`],
    ['a key that may be too long', `${'a'.repeat(1001)}: b\n`],
    ['deep nesting', `${'['.repeat(101)}${']'.repeat(101)}`],
    ['a file that is too large', `a: ${'é'.repeat(FILE_BYTES_MAX / 2)}`],
    ['properties that would take exponential time', '- &a\n'.repeat(20_000)],
  ])('%s', (_, text) => {
    expect(parseBasicYaml(text)).toBeUndefined()
  })
})

describe('any input that parseBasicYaml() parses has the same tree and no faults', () => {
  /** Compares the trees; returns the number of inputs that are basic. */
  const compare = (inputs: fc.Arbitrary<string>, numRuns: number) => {
    let basic = 0
    const property = fc.property(inputs, (text) => {
      const tree = parseBasicYaml(text)
      if (tree === undefined) return
      basic++
      expect(tree).toEqual(parseAll(text))
    })
    fc.assert(property, { numRuns })
    return basic
  }

  const marks = ['a', 'b c', '5', ': ', ':', ',', ', ', '\n', '\n', '\n  ', '\n    ', '- ', '-']
  const flow = ['[', ']', '{', '}', '"', "'", '"d"', "'e'", '#', ' # f', '? ', '?', '<<', '*']
  const others = ['---', '...', '\n---\n', '|', '>', '&', '!', '%', '@', '`', '\\', '\t', 'é', '~']
  const tokens = fc.constantFrom(...marks, ...marks, ...flow, ...others)

  test('sequences of tokens', () => {
    const inputs = fc.array(tokens, { maxLength: 24 }).map((all) => all.join(''))
    expect(compare(inputs, 20_000)).toBeGreaterThan(1000)
  })

  /** A tree and how each of its nodes is written. */
  type Tree = string | { readonly isFlow: boolean; readonly step: number; readonly of: Children }
  type Children = readonly { readonly key?: string; readonly value: Tree }[]
  const scalar = fc.constantFrom('x', 'x y', '"z"', "'#'", '12', '/a/*', '', '"a: b"', 'yes', '*')
  const { tree } = fc.letrec<{ tree: Tree }>((tie) => {
    const branch = (of: fc.Arbitrary<Children>) =>
      fc.record({ isFlow: fc.boolean(), step: fc.constantFrom(0, 1, 2, 4), of })
    const entry = fc.record({ key: fc.constantFrom('k', 'l', '"m"', 'n o'), value: tie('tree') })
    const lists = branch(fc.array(fc.record({ value: tie('tree') }), { maxLength: 4 }))
    const maps = branch(fc.array(entry, { maxLength: 4 }))
    return { tree: fc.oneof({ maxDepth: 4, depthIdentifier: 'tree' }, scalar, lists, maps) }
  })
  const write = (node: Tree, indent: string): string => {
    if (typeof node === 'string') return node
    const { isFlow, step, of } = node
    const within = `${indent}${' '.repeat(step)}`
    const children = of.map(({ key, value }) => {
      const lead = key === undefined ? (isFlow ? '' : '- ') : `${key}: `
      return `${lead}${write(value, `${within}${isFlow ? '' : '  '}`)}`
    })
    if (!isFlow) return children.map((child) => `\n${within}${child}`).join('')
    const joined = children.join(step > 1 ? `,\n${within}` : ', ')
    return of[0]?.key === undefined ? `[${joined}]` : `{${joined}}`
  }
  const written = tree.map((node) => write(node, ''))

  test('trees', () => {
    expect(compare(written, 5000)).toBeGreaterThan(1000)
  })

  test('trees with errors', () => {
    const edit = fc.record({ at: fc.nat(), remove: fc.nat(3), token: tokens })
    const inputs = fc.tuple(written, fc.array(edit, { maxLength: 3 })).map(([text, edits]) =>
      edits.reduce((edited, { at, remove, token }) => {
        const start = at % (edited.length + 1)
        return edited.slice(0, start) + token + edited.slice(start + remove)
      }, text),
    )
    expect(compare(inputs, 10_000)).toBeGreaterThan(1000)
  })
})
