// The scan for secrets: whole ones and excerpts at any position, and the bytes of each kind.
import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { createSecretScan, EXCERPT_MIN } from '../../kit/secret-scan.ts'

const prefix = 'curtail_'
const secrets = Array.from({ length: 100 }, () => prefix + randomBytes(32).toString('base64url'))

function scanned(output: string | Buffer) {
  const scan = createSecretScan(secrets, prefix)
  scan.add({ kind: 'log', name: 'a' }, '')
  scan.add({ kind: 'log', name: 'b' }, output)
  return scan.kinds.get('log')
}

test('finds each secret at any position, also in binary output', () => {
  secrets.forEach((secret, index) => {
    const output = `${'x'.repeat(index)}${secret}\n`
    const expected = { bytes: output.length, found: new Map([[index, 'b']]) }
    expect(scanned(output)).toMatchObject(expected)
    expect(scanned(Buffer.concat([Buffer.from([0xff, 0]), Buffer.from(output)]))).toMatchObject({
      found: expected.found,
    })
  })
})

test('finds each excerpt of the minimum length, and none in other output', () => {
  const [secret = ''] = secrets
  for (let at = prefix.length; at + EXCERPT_MIN <= secret.length; at++) {
    const excerpt = secret.slice(at, at + EXCERPT_MIN)
    expect(scanned(`${'y'.repeat(at)}${excerpt}`)?.found).toEqual(new Map([[0, 'b']]))
  }
  const others = Array.from({ length: 100 }, () => randomBytes(32).toString('base64url')).join('')
  const none = scanned(`${prefix}${others}`)
  expect([none?.found.size, [...(none?.sources ?? [])]]).toEqual([0, ['b']])
})

test('rejects a secret that is too short', () => {
  expect(() => createSecretScan([`${prefix}${'x'.repeat(EXCERPT_MIN - 1)}`], prefix)).toThrow(
    'a secret must be curtail_ and at least 23 random characters',
  )
})
