// The settings of the gRPC listener, with the names of envoyproxy/ratelimit.
import { type ConfigOf, dependentSettings } from '../config/config.ts'
import { durationSetting } from '../config/duration-setting.ts'
import { flagSetting, portSetting, stringSetting } from '../config/settings.ts'
import { findTlsProblems } from '../process/tls-files.ts'

/** Settings of the listener; durations are at most 20 days, which Node's timers support. */
export const grpcSettings = {
  GRPC_HOST: stringSetting('address on which gRPC is served', '0.0.0.0'),
  GRPC_PORT: portSetting('port on which gRPC is served', 8081),
  GRPC_UDS: stringSetting('unix socket on which gRPC is served instead of the port', ''),
  GRPC_SERVER_USE_TLS: flagSetting('whether gRPC uses TLS', false),
  GRPC_SERVER_TLS_CERT: stringSetting('PEM file of the certificate chain; reloaded on change', ''),
  GRPC_SERVER_TLS_KEY: stringSetting('PEM file of the private key; reloaded on change', ''),
  GRPC_CLIENT_TLS_CACERT: stringSetting(
    'PEM file of the CA certificates of clients; without it clients need no certificate',
    '',
  ),
  GRPC_CLIENT_TLS_SAN: stringSetting('host name that the certificate of a client must contain', ''),
  GRPC_MAX_CONNECTION_AGE: durationSetting(
    'time after which a client must reconnect, plus or minus a tenth; 0 = never',
    { min: '0s', max: '480h', fallback: '24h' },
  ),
  GRPC_MAX_CONNECTION_AGE_GRACE: durationSetting(
    'additional time after which the connection is closed, even with calls in flight',
    { min: '0s', max: '480h', fallback: '1h' },
  ),
} as const

/** The parsed settings. */
export type GrpcConfig = ConfigOf<typeof grpcSettings>

const { GRPC_SERVER_USE_TLS, GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY } = grpcSettings
const { GRPC_CLIENT_TLS_CACERT, GRPC_CLIENT_TLS_SAN } = grpcSettings
const tlsSettings = {
  ...{ GRPC_SERVER_USE_TLS, GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY },
  ...{ GRPC_CLIENT_TLS_CACERT, GRPC_CLIENT_TLS_SAN },
}

/** The check of the TLS settings and their files. */
export const grpcDependentSettings = dependentSettings(tlsSettings, (config) => {
  if (!config.GRPC_SERVER_USE_TLS) return []
  const files = findTlsProblems({
    certificate: ['GRPC_SERVER_TLS_CERT', config.GRPC_SERVER_TLS_CERT],
    key: ['GRPC_SERVER_TLS_KEY', config.GRPC_SERVER_TLS_KEY],
    authorities: ['GRPC_CLIENT_TLS_CACERT', config.GRPC_CLIENT_TLS_CACERT],
  })
  return [...findMissingTls(config), ...files]
})

/** The problems of TLS settings that require other settings. */
export function findMissingTls(config: ConfigOf<typeof tlsSettings>): string[] {
  const problems: string[] = []
  if (config.GRPC_SERVER_TLS_CERT === '' || config.GRPC_SERVER_TLS_KEY === '')
    problems.push(
      'GRPC_SERVER_USE_TLS requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: set both',
    )
  if (config.GRPC_CLIENT_TLS_SAN !== '' && config.GRPC_CLIENT_TLS_CACERT === '')
    problems.push('GRPC_CLIENT_TLS_SAN requires GRPC_CLIENT_TLS_CACERT: set it, too')
  return problems
}
