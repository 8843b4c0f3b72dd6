// The settings of the connection to the xDS server that the rules come from, with the names and
// defaults of envoyproxy/ratelimit.
import * as z from 'zod'
import {
  ConfigError,
  type ConfigOf,
  dependentSettings,
  fileSettings,
  type Setting,
} from '../../config/config.ts'
import { durationSetting } from '../../config/duration-setting.ts'
import { flagSetting, integerSetting, numberSetting, stringSetting } from '../../config/settings.ts'
import { findTlsProblems } from '../../process/tls-files.ts'

const MEBIBYTE = 1024 * 1024

/** The connection; used only with CONFIG_TYPE=GRPC_XDS_SOTW. */
export const xdsSettings = {
  CONFIG_GRPC_XDS_NODE_ID: stringSetting('node id that the xDS server receives', 'default'),
  CONFIG_GRPC_XDS_NODE_METADATA: pairsSetting({
    about: 'metadata of the node',
    allowed: 'key=value pairs separated by commas',
    pair: /^([^=]+)=(.*)$/s,
    ignoresOthers: true, // as envoyproxy/ratelimit does
  }),
  CONFIG_GRPC_XDS_SERVER_URL: stringSetting(
    'address of the xDS server: host:port, or unix:path',
    'localhost:18000',
  ),
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: durationSetting(
    'time until the next attempt if no connection can be opened; doubles with each attempt',
    { min: '100ms', max: '1h', fallback: '3s' },
  ),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: pairsSetting({
    about: 'headers of the stream to the xDS server',
    allowed: 'name:value pairs separated by commas; names must not end with -bin',
    pair: /^\s*((?!.*-bin\s*:)[0-9a-z_.-]{1,100})\s*:\s*([\x20-\x7e]*?)\s*$/i,
    keyOf: (name) => name.toLowerCase(), // as HTTP/2 requires
    secret: true,
  }),
  CONFIG_GRPC_XDS_SERVER_USE_TLS: flagSetting('whether the connection uses TLS', false),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: stringSetting(
    'PEM file of the client certificate for the xDS server; the connection is reopened on change',
    '',
  ),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: stringSetting('PEM file of its private key', ''),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: stringSetting(
    'PEM file of the CA certificates that verify the xDS server; if unset, those of Node.js',
    '',
  ),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: stringSetting(
    'host name that the certificate of the xDS server must contain, instead of that of its address',
    '',
  ),
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: durationSetting(
    'time until the next attempt after the stream has failed; doubles with each attempt',
    { min: '100ms', max: '1h', fallback: '10s' },
  ),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: durationSetting('maximum time until the next attempt', {
    min: '100ms',
    max: '1h',
    fallback: '60s',
  }),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: numberSetting(
    'fraction of the interval that is random; values above 1 count as 1',
    { min: 0, max: 100, fallback: 0.5 },
  ),
  XDS_CLIENT_BACKOFF_JITTER: flagSetting(
    'if false, the interval is not random, whatever XDS_CLIENT_BACKOFF_RANDOM_FACTOR is',
    true,
  ),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: integerSetting(
    'maximum size of a response of the xDS server; 0 = 4194304',
    { min: 0, max: 64 * MEBIBYTE, fallback: 0 },
  ),
} as const

/** The values of `xdsSettings`. */
export type XdsConfig = ConfigOf<typeof xdsSettings>

const { CONFIG_GRPC_XDS_SERVER_USE_TLS, CONFIG_GRPC_XDS_CLIENT_TLS_CERT } = xdsSettings
const { CONFIG_GRPC_XDS_CLIENT_TLS_KEY, CONFIG_GRPC_XDS_SERVER_TLS_CACERT } = xdsSettings
const tlsSettings = {
  CONFIG_GRPC_XDS_SERVER_USE_TLS,
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT,
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY,
}

/** A certificate requires its key, and a key its certificate. */
export const dependentXdsSettings = dependentSettings(tlsSettings, (config) => {
  const { CONFIG_GRPC_XDS_CLIENT_TLS_CERT: certificate } = config
  const { CONFIG_GRPC_XDS_CLIENT_TLS_KEY: key, CONFIG_GRPC_XDS_SERVER_USE_TLS: usesTls } = config
  if (!usesTls || (certificate === '') === (key === '')) return []
  const names = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY'
  return [`${names} require each other: set both, or neither`]
})

/** The check of the TLS files; a running process retries until they are valid. */
export const xdsFiles = fileSettings(
  { ...tlsSettings, CONFIG_GRPC_XDS_SERVER_TLS_CACERT },
  (config) => {
    if (!config.CONFIG_GRPC_XDS_SERVER_USE_TLS) return
    const problems = findTlsProblems({
      certificate: ['CONFIG_GRPC_XDS_CLIENT_TLS_CERT', config.CONFIG_GRPC_XDS_CLIENT_TLS_CERT],
      key: ['CONFIG_GRPC_XDS_CLIENT_TLS_KEY', config.CONFIG_GRPC_XDS_CLIENT_TLS_KEY],
      authorities: ['CONFIG_GRPC_XDS_SERVER_TLS_CACERT', config.CONFIG_GRPC_XDS_SERVER_TLS_CACERT],
    })
    if (problems.length > 0) throw new ConfigError(problems)
  },
)

/** Pairs separated by commas. `pair` matches one and has the groups key and value. */
function pairsSetting(given: {
  readonly about: string
  readonly allowed: string
  readonly pair: RegExp
  readonly secret?: boolean
  /** Whether entries that `pair` does not match are ignored. */
  readonly ignoresOthers?: boolean
  readonly keyOf?: (key: string) => string
}): Setting<ReadonlyMap<string, string>> {
  const { about, allowed, pair, secret = false, ignoresOthers = false } = given
  const { keyOf = (key: string) => key } = given
  return {
    about,
    allowed,
    fallback: 'none',
    secret,
    schema: z
      .string()
      .optional()
      .transform((pairs, context) => {
        const values = new Map<string, string>()
        for (const each of pairs === undefined ? [] : pairs.split(',')) {
          const [, key, value] = pair.exec(each) ?? []
          if (key === undefined || value === undefined) {
            if (ignoresOthers) continue
            context.addIssue({ code: 'custom', message: 'no pair' })
            return z.NEVER
          }
          values.set(keyOf(key), value)
        }
        return values
      }),
  }
}
