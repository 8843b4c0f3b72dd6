// Reads and validates the TLS files, and reloads them when they change, also when the directory of
// a mounted Secret is swapped. An invalid set never replaces a valid one. Opens no socket.
import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type TLSSocket } from 'node:tls'
import { type Background, runInBackground } from '../resilience/background.ts'

/** Paths of the files. */
export interface TlsFiles {
  /** `undefined`: a client without a certificate of its own. */
  readonly certificate: string | undefined
  readonly key: string | undefined
  /** The certificate authorities of the peers. */
  readonly authorities: string | undefined
}

/** Contents of the files. */
export interface TlsMaterial {
  readonly cert: Buffer | undefined
  readonly key: Buffer | undefined
  readonly ca: Buffer | undefined
}

/** An unusable file; the message names the file and the cause. */
class TlsFilesError extends Error {
  override readonly name = 'TlsFilesError'
}

/** Reads and validates the files. Throws TlsFilesError. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const { authorities } = files
  const [cert, key, ca] = await Promise.all([
    readPem(files.certificate),
    readPem(files.key),
    readPem(authorities),
  ])
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    const reason = (error as Error).message
    const paths = `${files.certificate ?? ''} and ${files.key ?? ''}`
    throw new TlsFilesError(`${paths} are not a certificate and its key: ${reason}`)
  }
  if (ca !== undefined) checkAuthorities(ca, authorities ?? '')
  return { cert, key, ca }
}

/** OpenSSL accepts a file without certificates; every peer would then be rejected. */
function checkAuthorities(ca: Buffer, path: string): void {
  try {
    new X509Certificate(ca)
    createSecureContext({ ca })
  } catch (error) {
    throw new TlsFilesError(`${path} contains no valid certificates: ${(error as Error).message}`)
  }
}

async function readPem(path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path)
  } catch (error) {
    throw new TlsFilesError(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

/**
 * Checks the files every `everyMs`. Calls `onChange` with their contents after a change, once two
 * successive checks have found the same state; the initial state counts as a change. Passes the
 * error of an invalid set to `onError` once.
 */
export function watchTlsFiles(options: {
  readonly files: TlsFiles
  readonly everyMs: number
  readonly onChange: (material: TlsMaterial) => void
  readonly onError: (error: unknown) => void
}): Background {
  const { files, onChange } = options
  let loaded: string | undefined
  let previous: string | undefined
  return runInBackground({
    everyMs: options.everyMs,
    onError: options.onError,
    async task() {
      const state = await fingerprintOf(files)
      const isSettled = state === previous
      previous = state
      if (!isSettled || state === loaded) return
      const [outcome] = await Promise.allSettled([readTlsFiles(files)])
      // A change during the read may result in a mixed set: the next checks reload the files.
      if ((await fingerprintOf(files)) !== state) return
      loaded = state
      if (outcome.status === 'rejected') throw outcome.reason
      onChange(outcome.value)
    },
  })
}

/** A fingerprint of the files' state; resolves symbolic links. */
async function fingerprintOf(files: TlsFiles): Promise<string> {
  const paths = [files.certificate ?? '', files.key ?? '', files.authorities ?? '']
  const states = paths
    .filter((path) => path !== '')
    .map(async (path) => {
      const found = await stat(path, { bigint: true }).catch(() => undefined)
      if (found === undefined) return 'absent'
      return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ')
    })
  return (await Promise.all(states)).join('\n')
}

/** Whether the client's certificate has this host name among its subject alternative names. */
export function isCertificateFor(socket: TLSSocket, name: string): boolean {
  const certificate = socket.getPeerX509Certificate()
  return certificate?.checkHost(name, { subject: 'never' }) !== undefined
}
