// Scans what a program has written for secrets, also for excerpts of them, and counts the bytes.

/** A kind of output, such as `log`, and its source, such as the process. */
interface ScanSource {
  readonly kind: string
  readonly name: string
}

/** What the scan of a kind has found so far. */
interface ScannedKind {
  readonly bytes: number
  readonly sources: ReadonlySet<string>
  /** The first source in which each secret was found, by the index of the secret. */
  readonly found: ReadonlyMap<number, string>
}

/** A scan of many outputs. */
export interface SecretScan {
  /** Scans one output as a whole: a secret that is split between two calls is not found. */
  add(source: ScanSource, output: string | Buffer): void
  readonly kinds: ReadonlyMap<string, ScannedKind>
}

interface GrowingKind extends ScannedKind {
  bytes: number
  readonly sources: Set<string>
  readonly found: Map<number, string>
}

/** Excerpts of at least this length contain a window at a multiple of its length. */
const WINDOW = 12

/** The minimum length of an excerpt of a secret that is found. */
export const EXCERPT_MIN = 2 * WINDOW - 1

/**
 * Creates a scan for these secrets, which have at least EXCERPT_MIN random characters after
 * `prefix`. It is practically impossible that a window of them occurs by chance.
 */
export function createSecretScan(secrets: readonly string[], prefix: string): SecretScan {
  const windows = new Map<string, number>()
  secrets.forEach((secret, index) => {
    const last = secret.length - WINDOW
    if (!secret.startsWith(prefix) || last < prefix.length + EXCERPT_MIN - WINDOW) {
      throw new Error(`a secret must be ${prefix} and at least ${EXCERPT_MIN} random characters`)
    }
    for (let at = prefix.length; at <= last; at++) windows.set(secret.slice(at, at + WINDOW), index)
  })
  const kinds = new Map<string, GrowingKind>()
  return {
    kinds,
    add({ kind, name }, output) {
      const characters = typeof output === 'string' ? output : output.toString('latin1')
      const none = () => ({
        bytes: 0,
        sources: new Set<string>(),
        found: new Map<number, string>(),
      })
      const scanned: GrowingKind = kinds.get(kind) ?? none()
      kinds.set(kind, scanned)
      scanned.bytes += characters.length
      if (characters.length > 0) scanned.sources.add(name)
      const { found } = scanned
      for (let at = 0; at + WINDOW <= characters.length; at += WINDOW) {
        const index = windows.get(characters.slice(at, at + WINDOW))
        if (index !== undefined && !found.has(index)) found.set(index, name)
      }
    },
  }
}
