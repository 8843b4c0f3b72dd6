// What a caught value reports.
import { expect, test } from '@jest/globals'
import { messageOf } from './message-of.ts'

test.each([
  ['the message of an error', new TypeError('no host'), 'no host'],
  ['a string as it is', 'no host', 'no host'],
  ['any other value as a string', 42, '42'],
  ['undefined as a string', undefined, 'undefined'],
  ['an object that is no error as a string', { message: 'no host' }, '[object Object]'],
])('returns %s', (_, thrown, message) => {
  expect(messageOf(thrown)).toBe(message)
})
