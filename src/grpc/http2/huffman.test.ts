// The bounds of the Huffman code: its longest codes, its padding, and the range that is decoded.
import { expect, test } from '@jest/globals'
import { decodeHuffman } from './huffman.ts'

const decode = (hex: string) => {
  const bytes = Buffer.from(hex, 'hex')
  return decodeHuffman(bytes, 0, bytes.length)
}

const valid: Record<string, readonly [hex: string, decoded: string]> = {
  'no bytes': ['', ''],
  'a code of 5 bits': ['1f', 'a'],
  'a code of 8 bits without padding': ['f8', '&'],
  'codes with 7 bits of padding': ['18ee7f', 'aa:'],
  'the shortest codes, 8 in 5 bytes': ['0000000000', '00000000'],
  'the longest codes, of 30 bits': ['fffffff3ffffffdfffffffbf', '\n\r\u0016'],
}

test.each(Object.entries(valid))('decodes %s', (_, [hex, decoded]) => {
  expect(decode(hex)).toBe(decoded)
})

const invalid: Record<string, string> = {
  'padding of 8 bits': 'f8ff',
  'padding of 15 bits': '18ee7fff',
  'padding with a 0 bit': '1e',
  'padding of zeros': '18',
  'the code EOS': 'ffffffff',
  'a code longer than EOS': 'ffffffffff1f',
}

test.each(Object.entries(invalid))('rejects %s', (_, hex) => {
  expect(decode(hex)).toBeUndefined()
})

test('decodes only the bytes from `start` to `end`', () => {
  const bytes = Buffer.from('001f1f00', 'hex')
  expect(decodeHuffman(bytes, 1, 2)).toBe('a')
  expect(decodeHuffman(bytes, 2, 3)).toBe('a')
  expect(decodeHuffman(bytes, 1, 1)).toBe('')
})
