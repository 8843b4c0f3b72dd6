// Lists of codes: what a line may contain, and the error for any other line.
import { expect, test } from '@jest/globals'
import { isCode } from '../links/alias.ts'
import { readCodeList } from './code-list.ts'

async function* chunksOf(content: string): AsyncGenerator<string, void, undefined> {
  const characters = content.length < 1000 ? 7 : 65_536
  for (let at = 0; at < content.length; at += characters) {
    yield await Promise.resolve(content.slice(at, at + characters))
  }
}

const read = (content: string) => readCodeList(chunksOf(content), { name: 'FILE', isCode })

test('a line has a code or a link in JSON; comments and duplicates are ignored', async () => {
  const link = JSON.stringify({ short_code: 'c-3', long_url: 'https://example.com/#a', more: 1 })
  const lines = ['\ufeffa1', '', '# all of them', ' b_2 \r', link, 'd#4', '  # none', 'a1', 'e5']
  expect(await read(lines.join('\n'))).toEqual([
    { code: 'a1', line: 1 },
    { code: 'b_2', line: 4 },
    { code: 'c-3', line: 5 },
    { code: 'd', line: 6 },
    { code: 'e5', line: 9 },
  ])
  expect(await read('')).toEqual([])
})

test.each([
  ['two words', 'a b', '"a b"'],
  ['a URL', 'https://curtail.example/a', '"https://curtail.example/a"'],
  ['11 characters', 'abcdefghijk', '"abcdefghijk"'],
  ['JSON without a code', '{"short_code":"a/b"}', '"{\\"short_code\\":\\"a/b\\"}"'],
  ['JSON with other members', '{"code":"a"}', '"{\\"code\\":\\"a\\"}"'],
  ['no JSON', '{"short_code":"a"', '"{\\"short_code\\":\\"a\\""'],
  ['100 characters', 'x'.repeat(100), `"${'x'.repeat(40)}"`],
  ['3 MB', 'x'.repeat(3_000_000), 'too long'],
])('a line with %s is an error with its number', async (_, line, shown) => {
  await expect(read(`ok\n\n${line}\nok2`)).rejects.toThrow(
    new Error(
      'line 3 of FILE must be a code, or a JSON object with a code as short_code: ' +
        `it is ${shown}`,
    ),
  )
})

test('a list has at most a million codes', async () => {
  async function* many(): AsyncGenerator<string, void, undefined> {
    for (let i = 0; i <= 1000; i++) {
      const lines = Array.from({ length: 1000 }, (_, at) => `${i * 1000 + at}\n`)
      yield await Promise.resolve(lines.join(''))
    }
  }
  await expect(readCodeList(many(), { name: 'FILE', isCode })).rejects.toThrow(
    'FILE must have at most 1000000 codes: split it',
  )
})
