// Changes of the list of blocked targets, verified with the list that the pods build.
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseBlockedEntry } from '../links/blocked-entry.ts'
import { createTableBuilder } from '../links/blocked-table-builder.ts'
import { createBlockedTargets } from '../links/blocked-targets.ts'
import type { ListDocument } from '../process/list-target.ts'
import {
  addEntries,
  findBlocking,
  normalizeEntry,
  parseEntries,
  readEntries,
  removeEntries,
} from './change-blocked-targets.ts'

const documentOf = (name: string, content: string, bytesMax = 1000): ListDocument => ({
  ...{ name, content, bytesMax },
})

test.each([
  ['EVIL.example.', 'evil.example'],
  ['https://evil.example:8443', 'evil.example'],
  ['http://sites.example/b%61d?x#', undefined],
  ['sites.example/b%61d?x', 'sites.example/bad?x'],
  ['sites.example/', 'sites.example/'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['127.1/x', '127.0.0.1/x'],
  ['[0::1]', '[::1]'],
])('%s has the normal form %s, which normalizes to itself', (line, expected) => {
  const entry = normalizeEntry(line)
  if (expected === undefined) expect(entry).toEqual({ fault: expect.any(String) })
  else expect([entry, normalizeEntry(expected)]).toEqual([expected, expected])
})

test('a file is parsed to its entries without duplicates, and its faulty lines by number', () => {
  const { entries, faulty } = parseEntries('# x\r\na.example\r\n\nA.example # y\n*.b\na.example/c')
  expect([...entries]).toEqual(['a.example', 'a.example/c'])
  expect(faulty).toMatchObject([{ number: 5, fault: expect.stringContaining('pattern') }])
})

test('entries that the list already has, in any form, are not added', () => {
  const documents = [documentOf('one', '# x\nA.example', 30), documentOf('two', 'b.example/c\n')]
  const change = addEntries(documents, new Set(['a.example', 'b.example', 'b.example/c']))
  expect([change?.added, change?.total]).toEqual([1, 3])
  expect([...(change?.contents ?? [])]).toEqual([['one', '# x\nA.example\nb.example\n']])
  expect(addEntries([documentOf('one', '', 5)], new Set(['a.example']))).toBeUndefined()
})

test('all forms of an entry are removed, and no other entry', () => {
  const content = '# x\nA.example\nhttps://a.example:1\na.example/b\nx.a.example\n'
  const removed = removeEntries([documentOf('one', content)], new Set(['a.example', 'y.example']))
  expect([...removed.found]).toEqual(['a.example'])
  expect(removed.contents.get('one')).toBe('# x\na.example/b\nx.a.example\n')
})

test('the list is read as its entries, and its faulty lines with their documents', () => {
  const documents = [documentOf('one', 'a.example\n*.b'), documentOf('two', '*.c\na.example')]
  const { entries, faulty } = readEntries(documents)
  expect([...entries]).toEqual(['a.example'])
  expect(faulty).toMatchObject([
    { document: 'one', number: 2 },
    { document: 'two', number: 1 },
  ])
})

const labels = fc.constantFrom('a', 'b', 'ab', 'example', 'xn--bcher-kva')
const hosts = fc.oneof(
  fc.array(labels, { minLength: 2, maxLength: 4 }).map((all) => all.join('.')),
  fc.constantFrom('127.0.0.1', '[::1]', 'localhost', 'A.Example.'),
)
const paths = fc.array(fc.constantFrom('/', 'a', 'b', '?', '%61', '..', '='), { maxLength: 5 })
const urls = fc
  .tuple(fc.constantFrom('http://', 'https://'), hosts, fc.constantFrom('', ':8443'), paths)
  .map(([scheme, host, port, path]) => `${scheme}${host}${port}/${path.join('')}`)
const entries = fc.oneof(
  hosts,
  fc.tuple(hosts, paths).map(([host, path]) => `${host}/${path.join('')}`),
)

test('a URL is blocked by an entry exactly if the pods block it with this entry', () => {
  const counts = { blocked: 0, other: 0 }
  fc.assert(
    fc.property(fc.array(entries, { minLength: 1, maxLength: 4 }), urls, (all, url) => {
      const isBlockedBy = (line: string) => {
        const builder = createTableBuilder({ entries: 1, seed: 7 })
        const entry = parseBlockedEntry(line)
        if (entry === undefined || 'fault' in entry) throw new Error(`faulty: ${line}`)
        builder.add(entry)
        return createBlockedTargets(builder.finish()).has(url)
      }
      const expected = [...new Set(all.filter(isBlockedBy).map(normalizeEntry))]
      expect(findBlocking([documentOf('one', all.join('\n'))], url)).toEqual(expected)
      counts[expected.length > 0 ? 'blocked' : 'other']++
    }),
    { numRuns: 2000 },
  )
  expect(Math.min(counts.blocked, counts.other)).toBeGreaterThan(20)
})

test.each(['evil.example', 'ftp://evil.example/', 'http://', 'javascript:http://x'])(
  '%s cannot be the URL of a link',
  (url) => {
    expect(findBlocking([], url)).toBeUndefined()
  },
)

test('comments, empty and faulty lines of the list block nothing', () => {
  const content = '# evil.example\n\n*.evil.example\ncom\nEVIL.example # x\nevil.example\n'
  const documents = [documentOf('one', content), documentOf('two', 'evil.example/\nx.example')]
  expect(findBlocking(documents, 'https://www.evil.example/')).toEqual(['evil.example'])
  expect(findBlocking(documents, 'https://evil.example/a')).toEqual([
    ...['evil.example', 'evil.example/'],
  ])
  expect(findBlocking(documents, 'https://notevil.example/')).toEqual([])
})
