// A TLS server for HTTP/2 whose certificate files are re-read on change. Opens no port.
import { createServer, type Server } from 'node:tls'
import { OperatorError } from '../process/role.ts'
import { readTlsFiles, type TlsFiles, watchTlsFiles } from '../process/tls-files.ts'

/** A server, and the function that stops watching its files. */
export interface SecureServer {
  readonly server: Server
  readonly stopWatching: () => Promise<void>
}

const HANDSHAKE_MS_MAX = 10_000
const minVersion = 'TLSv1.2'

/**
 * Creates the server; with `files.authorities`, clients need a certificate. `onError` is called if
 * changed files cannot be used: the last valid ones stay in use. Throws OperatorError.
 */
export async function createSecureServer(
  files: TlsFiles,
  onError: (error: unknown) => void,
): Promise<SecureServer> {
  const material = await readTlsFiles(files).catch((error: unknown) => {
    throw new OperatorError((error as Error).message)
  })
  const isMutual = files.authorities !== undefined
  const server = createServer({
    ...material,
    ALPNProtocols: ['h2'],
    minVersion,
    handshakeTimeout: HANDSHAKE_MS_MAX,
    requestCert: isMutual,
    rejectUnauthorized: isMutual,
  })
  const watching = watchTlsFiles({
    files,
    onChange: (changed) => {
      server.setSecureContext({ ...changed, minVersion })
    },
    onError,
  })
  return { server, stopWatching: () => watching.stop() }
}
