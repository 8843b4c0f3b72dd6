// The key of a release: its signatures are ECDSA, and keys that cosign cannot use are rejected.
import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readSigningKey } from './signing-key.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-key-'))
})

afterAll(() => rm(folder, { recursive: true }))

async function readKey(pem: string) {
  const path = join(folder, 'key')
  await writeFile(path, pem)
  return readSigningKey(path)
}

const exportKey = { type: 'pkcs8', format: 'pem' } as const

test('a signature is ECDSA with SHA-256', async () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = await readKey(pair.privateKey.export(exportKey).toString())
  const signature = Buffer.from(key.sign('message'), 'base64')
  expect(verify('sha256', Buffer.from('message'), pair.publicKey, signature)).toBe(true)
})

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const encrypted = privateKey.export({ ...exportKey, cipher: 'aes-256-cbc', passphrase: 'a' })

test.each([
  ['no key', 'a', 'it is not a private key in PEM'],
  ['another curve', privateKey.export(exportKey).toString(), 'curve P-256'],
  ['an encrypted key', encrypted.toString(), 'decrypt it first'],
  ["cosign's key", '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----', 'encrypted by cosign'],
])('%s cannot sign', async (_, pem, reason) => {
  await expect(readKey(pem)).rejects.toThrow(reason)
})
