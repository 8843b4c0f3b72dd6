// Reads the files with the secrets of a connection to Redis: at the start, and when they change.
// `reload-secrets.ts` applies changed secrets to the open connection.
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type Setting } from '../../config/config.ts'
import { optionalString, readPem } from '../../config/settings.ts'
import { checkAuthorities } from '../../process/tls-files.ts'
import type { RedisConnectionOptions, RedisTls } from './connection-options.ts'

const BYTES_MAX = 65_536
const tlsFileNames = ['REDIS_TLS_CACERT', 'REDIS_TLS_CLIENT_CERT', 'REDIS_TLS_CLIENT_KEY'] as const

/** TLS settings of every Redis of a process. */
type RedisTlsConfig = Readonly<Record<(typeof tlsFileNames)[number], string | undefined>> & {
  readonly REDIS_TLS_SKIP_HOSTNAME_VERIFICATION?: boolean
}

/** The setting `NAME_FILE` of the secret `NAME`. */
export function secretFileSetting(name: string): Setting<string | undefined> {
  const effect = 'changed credentials take effect without a restart'
  return optionalString(`file with the value of ${name}; ${effect}`)
}

/** The secret in the file that the setting `name` names; appends to `problems`. */
export function readSecret(name: string, file: string, problems: string[]): string | undefined {
  const { text, allowed } = readBounded(file)
  if (allowed !== undefined) problems.push(`${name} must name ${allowed}: current value is ${file}`)
  return text
}

function readBounded(file: string): { text?: string; allowed?: string } {
  try {
    const stats = statSync(file)
    if (!stats.isFile()) return { allowed: 'a readable file' }
    if (stats.size > BYTES_MAX) return { allowed: `a file of at most ${BYTES_MAX} bytes` }
    const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
    return text === '' ? { allowed: 'a file that is not empty' } : { text }
  } catch {
    return { allowed: 'a readable file' }
  }
}

/** How the secrets of a connection are read from their files. */
interface SecretSources {
  /** The paths of the files with credentials, if set. */
  readonly credentials: readonly (string | undefined)[]
  /** The files of certificates and keys; used only with TLS. */
  readonly tls: RedisTlsConfig
  /** Derives the options of the connection from the files; appends to `problems`. */
  readonly plan: (tls: RedisTls, problems: string[]) => RedisConnectionOptions | undefined
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
    const tlsProblems = isTlsUnused ? [] : problems
    const material = tlsOf(tls, tlsProblems)
    const options = plan(material, problems)
    if (options?.tls !== undefined) checkTls(material, tlsProblems)
    if (options !== undefined && first !== undefined && !hasSameAddress(options, first)) {
      problems.push(`${urlName}_FILE contains another address: it is used after a restart`)
    }
    if (options === undefined || problems.length > 0) throw new ConfigError(problems)
    return options
  }
  const options = read()
  const isSet = (path: string | undefined): path is string => path !== undefined
  const tlsPaths = options.tls === undefined ? [] : tlsFileNames.map((name) => tls[name])
  const paths = [...credentials, ...tlsPaths].filter(isSet)
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

/** Reads the PEM files of these settings; appends to `problems`. */
export function tlsOf(config: RedisTlsConfig, problems: string[]): RedisTls {
  const pemOf = (name: (typeof tlsFileNames)[number]) => readPem(name, config[name], problems)
  const hasCert = config.REDIS_TLS_CLIENT_CERT !== undefined
  if (hasCert !== (config.REDIS_TLS_CLIENT_KEY !== undefined)) {
    const [given, missing] = hasCert ? ['CERT', 'KEY'] : ['KEY', 'CERT']
    problems.push(
      `REDIS_TLS_CLIENT_${missing} (a file) is required if REDIS_TLS_CLIENT_${given} is set`,
    )
  }
  const ca = pemOf('REDIS_TLS_CACERT')
  const [cert, key] = [pemOf('REDIS_TLS_CLIENT_CERT'), pemOf('REDIS_TLS_CLIENT_KEY')]
  return { ca, cert, key, isHostChecked: config.REDIS_TLS_SKIP_HOSTNAME_VERIFICATION !== true }
}

/**
 * Checks the certificates, and that the key matches the client's certificate: while files are being
 * replaced, the key of one pair can be read with the certificate of another. Appends to `problems`.
 */
function checkTls({ ca, cert, key }: RedisTls, problems: string[]): void {
  try {
    if (ca !== undefined) checkAuthorities(ca)
  } catch {
    problems.push('REDIS_TLS_CACERT must contain valid certificates')
  }
  if (cert === undefined || key === undefined) return
  try {
    createSecureContext({ cert, key })
  } catch {
    problems.push('REDIS_TLS_CLIENT_KEY must be the key of REDIS_TLS_CLIENT_CERT')
  }
}
