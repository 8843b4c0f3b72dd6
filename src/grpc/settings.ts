// The settings of the gRPC listener, with the names of envoyproxy/ratelimit.
import type { ConfigOf } from '../config/config.ts'
import { durationSetting } from '../config/duration-setting.ts'
import { flagSetting, portSetting, stringSetting } from '../config/settings.ts'

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
