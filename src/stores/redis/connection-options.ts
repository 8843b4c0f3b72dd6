// The options of a connection to Redis, with its secrets: credentials, and certificates and key for
// TLS.
import type { RedisTarget } from './target.ts'

/** Connection options. */
export interface RedisConnectionOptions extends RedisSecrets {
  readonly target: RedisTarget
  /** The files with the secrets; absent if none of the secrets is from a file. */
  readonly secretFiles?: SecretFiles | undefined
  readonly database: number
  /** The timeout of connecting and of each command. */
  readonly timeoutMs: number
  /**
   * If credentials may change, commands of a lost connection wait this long for the next one, but
   * at most `timeoutMs`. @default RECONNECT_MS_MAX
   */
  readonly reconnectMsMax?: number
}

/** The default of `reconnectMsMax`. */
export const RECONNECT_MS_MAX = 250

/** The options that may change while the process runs. */
export interface RedisSecrets {
  readonly auth?: RedisAuth | undefined
  /** Credentials for the sentinels. */
  readonly sentinelAuth?: RedisAuth | undefined
  readonly tls?: RedisTls | undefined
}

/** Credentials. */
export interface RedisAuth {
  /** Absent: the default user. */
  readonly username?: string | undefined
  readonly password: string
}

/** TLS certificates and key in PEM. */
export interface RedisTls {
  /** The trusted CAs; absent: those that Node.js trusts. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Whether the host name is verified against the certificate. */
  readonly isHostChecked: boolean
}

/** Files with secrets, which may change while the process runs. */
export interface SecretFiles {
  readonly paths: readonly string[]
  /** Whether a file contains credentials, not only certificates and keys. */
  readonly hasCredentials: boolean
  /** Reads and checks the files. Throws ConfigError with one line per problem, without secrets. */
  readonly read: () => RedisSecrets
}
