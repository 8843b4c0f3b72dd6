// Reads the files with the secrets of a connection to Redis: at the start, and when they change.
// `reload-secrets.ts` applies changed secrets to the open connection.
import { readFileSync, statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type Setting } from '../../config/config.ts'
import { optionalString } from '../../config/settings.ts'
import type { RedisConnectionOptions } from './connection-options.ts'

const BYTES_MAX = 65_536

/** The setting `NAME_FILE` of the secret `NAME`. */
export function secretFileSetting(name: string): Setting<string | undefined> {
  return optionalString(`file with the value of ${name}; changes of credentials are applied`)
}

/** The secret in the file that the setting `name` names; appends to `problems`. */
export function readSecret(name: string, file: string, problems: string[]): string | undefined {
  const { text, problem } = readBounded(file)
  if (problem !== undefined) problems.push(`${name} must name ${problem}: current value is ${file}`)
  return text
}

function readBounded(file: string): { text?: string; problem?: string } {
  try {
    const stats = statSync(file)
    if (!stats.isFile()) return { problem: 'a readable file' }
    if (stats.size > BYTES_MAX) return { problem: `a file of at most ${BYTES_MAX} bytes` }
    const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
    return text === '' ? { problem: 'a file that is not empty' } : { text }
  } catch {
    return { problem: 'a readable file' }
  }
}

/** How the secrets of a connection are read from their files. */
interface SecretSources {
  /** The paths of the files with credentials, if set. */
  readonly credentials: readonly (string | undefined)[]
  /** The paths of certificates and keys, if set; used only with TLS. */
  readonly tls: readonly (string | undefined)[]
  /**
   * Derives the options of the connection from the files; appends problems of certificates and
   * keys to `tlsProblems`, others to `problems`.
   */
  readonly plan: (problems: string[], tlsProblems: string[]) => RedisConnectionOptions | undefined
  /** Name of the setting with the address. */
  readonly urlName: string
}

/** The planned options with the files of their secrets. Throws ConfigError. */
export function planWithSecretFiles({
  credentials,
  tls,
  plan,
  urlName,
}: SecretSources): RedisConnectionOptions {
  const read = (first?: RedisConnectionOptions) => {
    const problems: string[] = []
    const isTlsUnused = first !== undefined && first.tls === undefined
    const options = plan(problems, isTlsUnused ? [] : problems)
    if (options !== undefined && first !== undefined && !hasSameAddress(options, first)) {
      problems.push(`${urlName}_FILE contains another address: it is used after a restart`)
    }
    if (options === undefined || problems.length > 0) throw new ConfigError(problems)
    return options
  }
  const options = read()
  const isSet = (path: string | undefined): path is string => path !== undefined
  const paths = [...credentials, ...(options.tls === undefined ? [] : tls)].filter(isSet)
  if (paths.length === 0) return options
  const hasCredentials = credentials.some(isSet)
  return { ...options, secretFiles: { paths, hasCredentials, read: () => read(options) } }
}

function hasSameAddress(a: RedisConnectionOptions, b: RedisConnectionOptions): boolean {
  const addressOf = ({ target, database, tls }: RedisConnectionOptions) => [
    target,
    database,
    tls === undefined,
  ]
  return isDeepStrictEqual(addressOf(a), addressOf(b))
}
