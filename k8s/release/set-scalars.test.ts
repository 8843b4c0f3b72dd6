// Changed values in YAML: only the values change, and a missing value is an error.
import { expect, test } from '@jest/globals'
import { setScalars } from './set-scalars.ts'

const text = "# An image.\nimage:\n  repository: localhost/a # local\n  digest: ''\nreplicas: 2\n"

test('values change, comments and the other values do not', () => {
  const values = { 'image.repository': 'example.org/a', 'image.digest': 'sha256:00' }
  expect(setScalars(text, values)).toBe(
    text.replace('localhost/a', '"example.org/a"').replace("''", '"sha256:00"'),
  )
})

test.each(['image.tag', 'image', 'missing.value'])('%s is not a value of the file', (path) => {
  expect(() => setScalars(text, { [path]: '' })).toThrow(`Cannot set ${path}`)
})
