// Changes of the documents of a list: added lines fit, and no other line changes.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { addLines, decodeDocument, type ListDocument, linesOf, removeLines } from './list-target.ts'

const documentOf = (name: string, content: string, bytesMax = 100): ListDocument => ({
  ...{ name, content, bytesMax },
})

test('lines are added in order to the first documents with space', () => {
  const documents = [
    ...[documentOf('full', 'aaaa\n', 5), documentOf('fixed', '', 0), documentOf('one', 'a', 7)],
    ...[documentOf('two', '', 6), documentOf('three', '', 6)],
  ]
  expect(addLines(documents, ['bb', 'ü', 'dd'])).toEqual(
    new Map([
      ['one', 'a\nbb\n'],
      ['two', 'ü\ndd\n'],
    ]),
  )
  expect(addLines(documents, [])).toEqual(new Map())
})

test('nothing is added if not all lines fit', () => {
  const documents = [documentOf('one', '', 6), documentOf('two', '', 3)]
  expect(addLines(documents, ['aa', 'bb', 'cc', 'dd'])).toBeUndefined()
  expect(addLines(documents, ['aa', 'bb', 'cc'])?.size).toBe(2)
})

test('removing lines changes only the documents that have them', () => {
  const documents = [documentOf('one', '# x\r\na\n\nb\na'), documentOf('two', 'b\n')]
  const contents = removeLines(documents, ({ line }) => line === 'a')
  expect([...contents]).toEqual([['one', '# x\r\n\nb']])
})

const lines = fc.array(fc.stringMatching(/^[a-zü#]{0,6}$/), { maxLength: 8 })
const contents = fc
  .tuple(lines, fc.constantFrom('', '\n'))
  .map(([all, end]) => all.join('\n') + end)

test('added lines are all present, fit, and can be removed; the others stay as they are', () => {
  let fitted = 0
  fc.assert(
    fc.property(
      fc.array(fc.tuple(contents, fc.integer({ min: 0, max: 60 })), { maxLength: 4 }),
      fc.array(fc.stringMatching(/^[A-Z]{1,9}$/), { maxLength: 8 }),
      (given, added) => {
        const documents = given.map(([content, max], at) => documentOf(`d${at}`, content, max))
        const changed = addLines(documents, added)
        if (changed === undefined) return
        fitted++
        const after = documents.map((one) => ({
          ...one,
          content: changed.get(one.name) ?? one.content,
        }))
        const addedLines = [...linesOf(after)].filter(({ line }) => /^[A-Z]/.test(line))
        expect(addedLines.map(({ line }) => line)).toEqual(added)
        for (const { name, content, bytesMax } of after) {
          if (changed.has(name)) expect(Buffer.byteLength(content)).toBeLessThanOrEqual(bytesMax)
        }
        const reverted = removeLines(after, ({ line }) => added.includes(line))
        for (const { name, content } of documents) {
          const expected = content === '' || content.endsWith('\n') ? content : `${content}\n`
          if (changed.has(name)) expect(reverted.get(name)).toBe(expected)
        }
        expect([...reverted.keys()]).toEqual([...changed.keys()])
      },
    ),
  )
  expect(fitted).toBeGreaterThan(0)
})

test('each line has its document and its number', () => {
  const documents = [documentOf('one', 'a\n\nb'), documentOf('none', ''), documentOf('two', 'c\n')]
  expect([...linesOf(documents)]).toEqual([
    { line: 'a', document: 'one', number: 1 },
    { line: '', document: 'one', number: 2 },
    { line: 'b', document: 'one', number: 3 },
    { line: 'c', document: 'two', number: 1 },
  ])
})

test('spaces, tabs and CRs around a line are removed, and so is the BOM of a file', () => {
  const content = '\ufeff \t a\t b \r\n\ufeffc\u00a0\r\n\u2028d\v'
  const documents = [documentOf('one', content)]
  const expected = ['a\t b', '\ufeffc\u00a0', '\u2028d\v']
  expect([...linesOf(documents)].map(({ line }) => line)).toEqual(expected)
  const removed: string[] = []
  const contents = removeLines(documents, ({ line }) => removed.push(line) > 2)
  expect([removed, contents.get('one')]).toEqual([expected, '\ufeff \t a\t b \r\n\ufeffc\u00a0\r'])
})

test('a document that is not UTF-8 is an error, and a byte order mark stays', () => {
  expect(() => decodeDocument(Buffer.from([0x61, 0xff]))).toThrow('not valid for encoding utf-8')
  const bytes = Buffer.from('\ufeffa')
  expect(Buffer.from(decodeDocument(bytes))).toEqual(bytes)
})
