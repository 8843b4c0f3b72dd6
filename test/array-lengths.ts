// Makes `toEqual` compare the lengths of arrays. By itself, it ignores `undefined` at their end: a
// list of failures that should be empty may then contain one without a message.
import { expect } from '@jest/globals'

expect.addEqualityTesters([
  (a, b) => (Array.isArray(a) && Array.isArray(b) && a.length !== b.length ? false : undefined),
])
