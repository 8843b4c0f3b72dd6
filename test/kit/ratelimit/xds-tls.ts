// Mutual TLS between a limiter and the xDS server of a test: two CAs, and the limiter's TLS files.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { type Authority, createAuthority, type Issued } from './grpc-certificates.ts'

/** The TLS files of a limiter, and the credentials of its server. */
export interface XdsTls {
  /** The settings of a limiter that uses the files. */
  readonly env: Readonly<Record<string, string>>
  /** The path of one of the files. */
  fileOf(name: 'tls.crt' | 'tls.key' | 'ca.crt'): string
  /** Replaces the certificate and the key of the limiter. */
  writeClient(issued: Issued): void
  /** The credentials of a server that requires a certificate of `xdsClients`. */
  serverCredentials(issued?: Issued): grpc.ServerCredentials
  /** Deletes the files. */
  readonly remove: () => void
}

/** The host name that the certificate of the server must contain. */
export const SERVER_NAME = 'xds.example'
/** The CA that the limiter trusts. */
export const xdsServers: Authority = createAuthority('xDS servers')
/** The CA that the server trusts. */
export const xdsClients: Authority = createAuthority('xDS clients')

/** Writes valid files into a new folder. */
export function createXdsTls(): XdsTls {
  const folder = mkdtempSync(join(tmpdir(), 'curtail-xds-tls-'))
  const fileOf = (name: string) => join(folder, name)
  const writeClient = ({ cert, key }: Issued) => {
    writeFileSync(fileOf('tls.crt'), cert)
    writeFileSync(fileOf('tls.key'), key)
  }
  writeFileSync(fileOf('ca.crt'), xdsServers.cert)
  writeClient(xdsClients.issue(['limiter']))
  return {
    env: {
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: fileOf('tls.crt'),
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: fileOf('tls.key'),
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: fileOf('ca.crt'),
      CONFIG_GRPC_XDS_SERVER_TLS_SAN: SERVER_NAME,
    },
    fileOf,
    writeClient,
    serverCredentials({ cert, key } = xdsServers.issue([SERVER_NAME])) {
      const pair = { private_key: Buffer.from(key), cert_chain: Buffer.from(cert) }
      return grpc.ServerCredentials.createSsl(Buffer.from(xdsClients.cert), [pair], true)
    },
    remove() {
      rmSync(folder, { recursive: true })
    },
  }
}
