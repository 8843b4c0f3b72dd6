// Signs as cosign does: ECDSA on P-256 with SHA-256.
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'

/** The key of a release. */
export interface SigningKey {
  /** The signature of these bytes, in base64 of DER. */
  sign(bytes: string | Buffer): string
}

/** Reads a private key in PEM. Throws the reason if cosign could not verify its signatures. */
export async function readSigningKey(path: string): Promise<SigningKey> {
  const pem = await readFile(path, 'utf8')
  const reject = (reason: string, cause?: unknown) =>
    new Error(`Cannot sign with ${path}: ${reason}`, { cause })
  if (/-----BEGIN ENCRYPTED (COSIGN|SIGSTORE) PRIVATE KEY-----/.test(pem)) {
    throw reject('it is encrypted by cosign; create a key with "openssl ecparam" (docs/release.md)')
  }
  if (pem.includes('ENCRYPTED')) throw reject('it is encrypted; decrypt it first')
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    throw reject('it is not a private key in PEM', error)
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw reject('it must be an ECDSA key on the curve P-256')
  }
  return { sign: (bytes) => sign('sha256', Buffer.from(bytes), key).toString('base64') }
}
