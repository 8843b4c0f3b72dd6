// The files of TLS: read whole, tried, and read again when they change, also when a directory of a
// mounted Secret is swapped. A bad set never replaces a good one. Opens no socket.
import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type TLSSocket } from 'node:tls'
import { type Background, runInBackground } from '../resilience/background.ts'

/** Where they are. */
export interface TlsFiles {
  readonly certificate: string
  readonly key: string
  /** Authorities of the clients; `undefined`: clients need no certificate. */
  readonly clientAuthorities: string | undefined
}

/** What they hold. */
export interface TlsMaterial {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca: Buffer | undefined
}

/** Files that cannot be used; the message says which and why. */
class TlsFilesError extends Error {
  override readonly name = 'TlsFilesError'
}

/** Reads and tries the files. Throws TlsFilesError. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const { clientAuthorities } = files
  const [cert, key, ca] = await Promise.all([
    readPart(files.certificate),
    readPart(files.key),
    clientAuthorities === undefined ? undefined : readPart(clientAuthorities),
  ])
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    const why = (error as Error).message
    throw new TlsFilesError(`${files.certificate} and ${files.key} are no certificate: ${why}`)
  }
  if (ca !== undefined) tryAuthorities(ca, clientAuthorities ?? '')
  return { cert, key, ca }
}

/** OpenSSL takes a file without a certificate for an empty list: then nobody would be let in. */
function tryAuthorities(ca: Buffer, path: string): void {
  try {
    new X509Certificate(ca)
    createSecureContext({ ca })
  } catch (error) {
    throw new TlsFilesError(`${path} holds no certificates: ${(error as Error).message}`)
  }
}

async function readPart(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw new TlsFilesError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

/**
 * Looks at the files every `everyMs`, and gives what they hold to `onChange` once they have changed
 * and stayed the same between two looks; the first time as soon as they have stayed the same. A set
 * that cannot be used goes once to `onError`.
 */
export function followTlsFiles(options: {
  readonly files: TlsFiles
  readonly everyMs: number
  readonly onChange: (material: TlsMaterial) => void
  readonly onError: (error: unknown) => void
}): Background {
  const { files, onChange } = options
  let read: string | undefined
  let seen: string | undefined
  return runInBackground({
    everyMs: options.everyMs,
    onError: options.onError,
    async task() {
      const state = await stateOf(files)
      const isSettled = state === seen
      seen = state
      if (!isSettled || state === read) return
      const [outcome] = await Promise.allSettled([readTlsFiles(files)])
      // Changed while it was read, it may be half of each: the next looks see to it.
      if ((await stateOf(files)) !== state) return
      read = state
      if (outcome.status === 'rejected') throw outcome.reason
      onChange(outcome.value)
    },
  })
}

/** Tells one state of the files from another; follows links. */
async function stateOf(files: TlsFiles): Promise<string> {
  const paths = [files.certificate, files.key, files.clientAuthorities ?? '']
  const states = paths
    .filter((path) => path !== '')
    .map(async (path) => {
      const found = await stat(path, { bigint: true }).catch(() => undefined)
      if (found === undefined) return 'absent'
      return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ')
    })
  return (await Promise.all(states)).join('\n')
}

/** Whether the client's certificate is for this host name, by its alternative names alone. */
export function isCertificateFor(socket: TLSSocket, name: string): boolean {
  const certificate = socket.getPeerX509Certificate()
  return certificate?.checkHost(name, { subject: 'never' }) !== undefined
}
