// Generates a CA and the certificates that it signs: X.509 v3 in DER, with only the fields that TLS
// requires. For tests only.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { connect } from 'node:tls'

/** A certificate and its key, in PEM. */
export interface Issued {
  readonly cert: string
  readonly key: string
}

/** A certificate authority. */
export interface Authority {
  readonly cert: string
  /** Issues a certificate for these host names, valid for `days`. @default 1 */
  issue(names: readonly string[], days?: number): Issued
}

const DAY_MS = 86_400_000
const OIDS = {
  commonName: '0603550403',
  ecdsaWithSha256: '06082a8648ce3d040302',
  basicConstraints: '0603551d13',
  alternativeNames: '0603551d11',
} as const

/** Creates a CA. */
export function createAuthority(name: string): Authority {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const own = { issuer: name, key: pair.privateKey }
  const isAuthority = extension(OIDS.basicConstraints, sequence(der(0x01, Buffer.from([0xff]))))
  const cert = signed(own, { subject: name, key: pair.publicKey, extensions: isAuthority })
  return {
    cert,
    issue(names, days) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const alternatives = sequence(...names.map((host) => der(0x82, Buffer.from(host))))
      const extensions = extension(OIDS.alternativeNames, alternatives)
      return {
        cert: signed(own, { subject: names[0] ?? '', key: publicKey, extensions, days }),
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      }
    },
  }
}

/** The serial number of the certificate that a new connection to a limiter's gRPC port gets. */
export function serialNumberOf(port: number, { cert: ca }: Authority): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'] }
    const socket = connect({ ...options, ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

function signed(
  by: { issuer: string; key: KeyObject },
  of: { subject: string; key: KeyObject; extensions: Buffer; days?: number | undefined },
): string {
  const algorithm = sequence(Buffer.from(OIDS.ecdsaWithSha256, 'hex'))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    nameOf(by.issuer),
    sequence(timeOf(Date.now() - DAY_MS), timeOf(Date.now() + (of.days ?? 1) * DAY_MS)),
    nameOf(of.subject),
    of.key.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(of.extensions)),
  )
  const signature = sign('sha256', body, by.key)
  const certificate = sequence(
    body,
    algorithm,
    der(0x03, Buffer.concat([Buffer.from([0]), signature])),
  )
  const lines = certificate.toString('base64').replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

function extension(oid: string, value: Buffer): Buffer {
  return sequence(Buffer.from(oid, 'hex'), der(0x04, value))
}

function nameOf(name: string): Buffer {
  return sequence(
    der(0x31, sequence(Buffer.from(OIDS.commonName, 'hex'), der(0x0c, Buffer.from(name)))),
  )
}

function timeOf(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return der(0x18, Buffer.from(digits))
}

function sequence(...elements: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(elements))
}

function der(tag: number, value: Buffer): Buffer {
  const { length } = value
  const header =
    length < 128
      ? [tag, length]
      : length < 256
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from(header), value])
}
