// Reads and validates the TLS files, and reloads them when they change, even when the directory of
// a mounted Secret is swapped. An invalid set never replaces a valid one. Opens no socket.
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type TLSSocket } from 'node:tls'
import { readPem } from '../config/settings.ts'
import { createBoundedAccess } from './bounded-access.ts'
import { type FileWatch, scanFiles, watchFiles } from './watch-files.ts'

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

/** A file that cannot be read now; a later attempt may succeed without a change. */
class UnreadableError extends TlsFilesError {}

const RELOAD_MS_MAX = 10_000

/** Reads and validates the files, one after the other. Throws TlsFilesError. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const { authorities } = files
  const cert = await readIfSet(files.certificate)
  const key = await readIfSet(files.key)
  const ca = await readIfSet(authorities)
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    const reason = (error as Error).message
    const paths = `${files.certificate ?? ''} and ${files.key ?? ''}`
    throw new TlsFilesError(`${paths} are not a certificate and its key: ${reason}`)
  }
  try {
    if (ca !== undefined) checkAuthorities(ca)
  } catch (error) {
    const reason = (error as Error).message
    throw new TlsFilesError(`${authorities ?? ''} contains no valid certificates: ${reason}`)
  }
  return { cert, key, ca }
}

/** Names of the settings that name the files, and their values. */
export type TlsFileSettings = Readonly<
  Record<keyof TlsFiles, readonly [string, string | undefined]>
>

/** The problems of the files, one sentence each, with the names of their settings. */
export function findTlsProblems(files: TlsFileSettings): string[] {
  const problems: string[] = []
  const contentOf = ([name, path]: TlsFileSettings['key']) =>
    readPem(name, path === '' ? undefined : path, problems)
  const [cert, key] = [contentOf(files.certificate), contentOf(files.key)]
  const ca = contentOf(files.authorities)
  try {
    if (cert !== undefined && key !== undefined) createSecureContext({ cert, key })
  } catch (error) {
    const rule = `${files.key[0]} must be the key of ${files.certificate[0]}`
    problems.push(`${rule}: ${(error as Error).message}`)
  }
  try {
    if (ca !== undefined) checkAuthorities(ca)
  } catch (error) {
    problems.push(
      `${files.authorities[0]} must contain valid certificates: ${(error as Error).message}`,
    )
  }
  return problems
}

/**
 * Throws if the contents of a PEM file are not the certificates of authorities. OpenSSL accepts a
 * file without certificates; every peer would then be rejected.
 */
export function checkAuthorities(ca: Buffer | string): void {
  new X509Certificate(ca)
  createSecureContext({ ca })
}

async function readIfSet(path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path)
  } catch (error) {
    throw new UnreadableError(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

/**
 * Watches the files. Calls `onChange` with their contents after a change; the initial state counts
 * as a change. Passes the error of an invalid set to `onError` once. Files that cannot be read
 * within RELOAD_MS_MAX are retried, and the same error is reported once.
 */
export function watchTlsFiles(options: {
  readonly files: TlsFiles
  readonly onChange: (material: TlsMaterial) => void
  readonly onError: (error: unknown) => void
}): FileWatch {
  const { files, onChange, onError } = options
  const paths = [files.certificate, files.key, files.authorities].filter(
    (path) => path !== undefined,
  )
  const scan = () => scanFiles(paths)
  const access = createBoundedAccess(RELOAD_MS_MAX)
  const timeout = () =>
    new UnreadableError(`Cannot read ${paths.join(', ')} within ${RELOAD_MS_MAX / 1000} s`)
  const readUnchanged = async () => {
    const before = await scan()
    const [outcome] = await Promise.allSettled([readTlsFiles(files)])
    // A change during the read may result in a mixed set; the watch detects that change, too.
    if ((await scan()).state !== before.state) return undefined
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
  let reported: string | undefined
  return watchFiles({
    scan,
    async onChange() {
      try {
        const material = await access(readUnchanged, timeout)
        reported = undefined
        if (material !== undefined) onChange(material)
        return undefined
      } catch (error) {
        const before = reported
        reported = error instanceof UnreadableError ? error.message : undefined
        if (reported === undefined) throw error
        if (reported !== before) onError(error)
        return 'retry'
      }
    },
    onError,
  })
}

/** Whether the client's certificate has this host name among its subject alternative names. */
export function isCertificateFor(socket: TLSSocket, name: string): boolean {
  const certificate = socket.getPeerX509Certificate()
  return certificate?.checkHost(name, { subject: 'never' }) !== undefined
}
