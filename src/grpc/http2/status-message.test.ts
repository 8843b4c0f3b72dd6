// The encoding of `grpc-message`: which bytes are percent-encoded, and the bound of its length.
import { expect, test } from '@jest/globals'
import { encodeStatusMessage } from './status-message.ts'

const examples: readonly (readonly [details: string, encoded: string])[] = [
  ['', ''],
  [' ~', ' ~'],
  ['a%b', 'a%25b'],
  ['$&', '$&'],
  ['\u001f\u007f', '%1F%7F'],
  ['\n', '%0A'],
  ['é', '%C3%A9'],
  ['\ud800', '%EF%BF%BD'],
]

test.each(examples)('encodes %j as %j', (details, encoded) => {
  expect(encodeStatusMessage(details)).toBe(encoded)
})

test('truncates an encoded message as soon as it exceeds 8000 bytes', () => {
  expect(encodeStatusMessage('x'.repeat(8001))).toBe('x'.repeat(8001))
  expect(encodeStatusMessage('x'.repeat(9000))).toBe('x'.repeat(8001))
  expect(encodeStatusMessage('\n'.repeat(9000))).toBe('%0A'.repeat(2667))
})
