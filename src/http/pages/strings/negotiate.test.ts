// Which language a client gets, and that no language lacks a string or a placeholder.
import type { IncomingMessage } from 'node:http'
import { expect, test } from '@jest/globals'
import { de } from './de.ts'
import { en } from './en.ts'
import { fill, stringsFor } from './negotiate.ts'

const languageFor = (accepted: string | undefined) =>
  stringsFor({ headers: { 'accept-language': accepted } } as unknown as IncomingMessage).language

test.each([
  [undefined, 'en'],
  ['', 'en'],
  ['*', 'en'],
  ['fr', 'en'],
  ['en-US,en;q=0.9,de;q=0.8', 'en'],
  ['de', 'de'],
  ['de-CH', 'de'],
  ['fr, de;q=0.5', 'de'],
  ['en;q=0.4, de;q=0.5', 'de'],
  ['de;q=0', 'en'],
  [';;q=,=,', 'en'],
])('Accept-Language %j gets %s', (accepted, language) => {
  expect(languageFor(accepted)).toBe(language)
})

/** Every string with its path. */
function stringsIn(value: object, path = ''): [string, string][] {
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const at = `${path}/${name}`
    if (typeof member === 'string') return [[at, member]]
    return typeof member === 'object' && member !== null ? stringsIn(member, at) : []
  })
}

const placeholdersIn = (template: string) => template.match(/\{\w+\}|`\w+`/g)?.sort() ?? []

test('German has the placeholders of English, and repeats no English sentence', () => {
  const german = new Map(stringsIn(de))
  for (const [path, english] of stringsIn(en)) {
    const translated = german.get(path)
    if (translated === undefined) continue // the compiler reports it; a status is not a string
    expect([path, placeholdersIn(translated)]).toEqual([path, placeholdersIn(english)])
    if (english.includes(' ')) expect(translated).not.toBe(english)
  }
})

test('a placeholder without a value is kept, and a value is never used as a pattern', () => {
  expect(fill('{alias} {other}', { alias: '$& {other}' })).toBe('$& {other} {other}')
})
