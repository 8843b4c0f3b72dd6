// Cassandra's settings and the connection plan derived from them. Reads certificate files; does
// not connect or import the driver.
import { isIP } from 'node:net'
import * as z from 'zod'
import {
  ConfigError,
  type ConfigOf,
  type Setting,
  dependentSettings,
  withDefault,
} from '../../config/config.ts'
import { integerSetting, optionalString, readPem } from '../../config/settings.ts'
import { findTlsProblems } from '../../process/tls-files.ts'

const HOSTS_MAX = 64
const hostName = /^[0-9A-Za-z_]([0-9A-Za-z_.-]{0,252}[0-9A-Za-z_.])?$/
const dcName = /^[\w.-]{1,64}$/

function isHost(value: string): boolean {
  return isIP(value) !== 0 || hostName.test(value)
}

function listOf(value: string): string[] {
  return value.split(',').map((item) => item.trim())
}

/** Settings of every role that uses Cassandra. */
export const cassandraSettings = {
  CASSANDRA_CONTACT_POINTS: {
    about: 'contact points of Cassandra',
    allowed: `1 to ${HOSTS_MAX} names or addresses without ports, separated by commas`,
    fallback: 'required',
    schema: z
      .string()
      .transform(listOf)
      .pipe(z.array(z.string().refine(isHost)).min(1).max(HOSTS_MAX)),
  },
  CASSANDRA_PORT: integerSetting('CQL port of the nodes', {
    min: 1,
    max: 65_535,
    fallback: 9042,
  }),
  CASSANDRA_LOCAL_DC: {
    about: 'local data center of Cassandra; the process connects only to nodes in it',
    allowed: 'the name of a data center: up to 64 letters, digits, _, . and -',
    fallback: 'required',
    schema: z.string().regex(dcName),
  },
  CASSANDRA_KEYSPACE: withDefault({
    about: 'keyspace of the tables',
    allowed: 'a lower-case letter, followed by up to 47 lower-case letters, digits or _',
    fallback: 'curtail',
    schema: z.string().regex(/^[a-z][a-z0-9_]{0,47}$/),
  }),
  CASSANDRA_USERNAME: optionalString('user name for Cassandra'),
  CASSANDRA_PASSWORD: optionalString('password of CASSANDRA_USERNAME', true),
  CASSANDRA_TLS_CA: optionalString(
    'PEM file of the CA certificates that verify the nodes; if set, the connection uses TLS',
  ),
  CASSANDRA_TLS_CERT: optionalString('PEM file of the client certificate for Cassandra'),
  CASSANDRA_TLS_KEY: optionalString('PEM file of the key of CASSANDRA_TLS_CERT'),
  CASSANDRA_SERIAL: withDefault({
    about:
      'where claims of codes are decided: in the local data center, or across all data centers',
    allowed: 'local or global',
    fallback: 'local',
    schema: z.enum(['local', 'global']),
  }),
} as const satisfies Readonly<Record<string, Setting<unknown>>>

const REPLICAS_MAX = 9

/** The number of replicas in each data center. */
export type Replication = readonly { readonly dc: string; readonly replicas: number }[]

/** CASSANDRA_REPLICATION, which only `migrate` reads. */
export const replicationSetting: Setting<Replication | undefined> = {
  about: 'replicas in each data center; if set, migrate creates the keyspace',
  allowed: `data centers, each once, with 1 to ${REPLICAS_MAX} replicas, such as dc1:3,dc2:3`,
  fallback: 'unset',
  schema: z
    .string()
    .transform((value) =>
      listOf(value).map((item) => {
        const [dc = '', replicas = '', ...rest] = item.split(':')
        return { dc, replicas: /^\d$/.test(replicas) && rest.length === 0 ? Number(replicas) : 0 }
      }),
    )
    .pipe(
      z
        .array(
          z.object({ dc: z.string().regex(dcName), replicas: z.int().min(1).max(REPLICAS_MAX) }),
        )
        .refine((list) => new Set(list.map(({ dc }) => dc)).size === list.length),
    )
    .optional(),
}

/** Values of `cassandraSettings`. */
export type CassandraConfig = ConfigOf<typeof cassandraSettings>

/** The connection plan derived from the settings. */
export interface CassandraPlan {
  readonly hosts: readonly string[]
  readonly port: number
  readonly localDc: string
  readonly keyspace: string
  readonly credentials: { readonly username: string; readonly password: string } | undefined
  readonly tls: CassandraTls | undefined
  /** Whether claims are settled across all data centers. */
  readonly isGlobal: boolean
}

/** Certificates and key in PEM. */
interface CassandraTls {
  readonly ca: string
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** Derives the plan. Throws ConfigError with every problem, one line each. */
export function planCassandra(config: CassandraConfig): CassandraPlan {
  const { tls, problems } = tlsOf(config)
  const { CASSANDRA_USERNAME: username, CASSANDRA_PASSWORD: password } = config
  problems.push(...loginProblemsOf(config))
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    hosts: config.CASSANDRA_CONTACT_POINTS,
    port: config.CASSANDRA_PORT,
    localDc: config.CASSANDRA_LOCAL_DC,
    keyspace: config.CASSANDRA_KEYSPACE,
    credentials:
      username === undefined || password === undefined ? undefined : { username, password },
    tls,
    isGlobal: config.CASSANDRA_SERIAL === 'global',
  }
}

const {
  CASSANDRA_USERNAME,
  CASSANDRA_PASSWORD,
  CASSANDRA_TLS_CA,
  CASSANDRA_TLS_CERT,
  CASSANDRA_TLS_KEY,
} = cassandraSettings
const loginSettings = { CASSANDRA_USERNAME, CASSANDRA_PASSWORD }
const tlsSettings = { CASSANDRA_TLS_CA, CASSANDRA_TLS_CERT, CASSANDRA_TLS_KEY }

/** The checks of settings that depend on each other. */
export const cassandraDependentSettings = [
  dependentSettings(tlsSettings, (config) => {
    const files = findTlsProblems({
      certificate: ['CASSANDRA_TLS_CERT', config.CASSANDRA_TLS_CERT],
      key: ['CASSANDRA_TLS_KEY', config.CASSANDRA_TLS_KEY],
      authorities: ['CASSANDRA_TLS_CA', config.CASSANDRA_TLS_CA],
    })
    return [...new Set([...tlsOf(config).problems, ...files])]
  }),
  dependentSettings(loginSettings, loginProblemsOf),
]

function loginProblemsOf({
  CASSANDRA_USERNAME: username,
  CASSANDRA_PASSWORD: password,
}: ConfigOf<typeof loginSettings>): readonly string[] {
  if ((username === undefined) === (password === undefined)) return []
  const [missing, given] =
    username === undefined ? ['USERNAME', 'PASSWORD'] : ['PASSWORD', 'USERNAME']
  return [`CASSANDRA_${missing} (a string) is required if CASSANDRA_${given} is set`]
}

function tlsOf(config: ConfigOf<typeof tlsSettings>): {
  readonly tls: CassandraTls | undefined
  readonly problems: string[]
} {
  const problems: string[] = []
  const pemOf = (name: keyof typeof tlsSettings) => readPem(name, config[name], problems)
  const needs = (name: keyof typeof tlsSettings, given: keyof typeof tlsSettings) => {
    if (config[given] !== undefined && config[name] === undefined)
      problems.push(`${name} (a file) is required if ${given} is set`)
  }
  needs('CASSANDRA_TLS_CA', 'CASSANDRA_TLS_CERT')
  needs('CASSANDRA_TLS_KEY', 'CASSANDRA_TLS_CERT')
  needs('CASSANDRA_TLS_CERT', 'CASSANDRA_TLS_KEY')
  const ca = pemOf('CASSANDRA_TLS_CA')
  const [cert, key] = [pemOf('CASSANDRA_TLS_CERT'), pemOf('CASSANDRA_TLS_KEY')]
  return { tls: ca === undefined ? undefined : { ca, cert, key }, problems }
}
