// The settings of the gRPC listener, by the reference's names.
import type { ConfigOf } from '../config/config.ts'
import { durationSetting } from '../config/duration-setting.ts'
import { flagSetting } from '../config/flag-setting.ts'
import { portSetting, textSetting } from '../config/settings.ts'

/** Settings of the listener; timers cannot be set for longer than 20 days. */
export const grpcSettings = {
  GRPC_HOST: textSetting('address on which gRPC is served', '0.0.0.0'),
  GRPC_PORT: portSetting('port on which gRPC is served', 8081),
  GRPC_UDS: textSetting('unix socket on which gRPC is served instead of the port', ''),
  GRPC_SERVER_USE_TLS: flagSetting('whether gRPC is spoken over TLS', false),
  GRPC_SERVER_TLS_CERT: textSetting('PEM file of the certificate chain; read again on change', ''),
  GRPC_SERVER_TLS_KEY: textSetting('PEM file of the private key; read again on change', ''),
  GRPC_CLIENT_TLS_CACERT: textSetting(
    'PEM file of the authorities whose clients are let in; without it clients need no certificate',
    '',
  ),
  GRPC_CLIENT_TLS_SAN: textSetting('host name that a client’s certificate must be for', ''),
  GRPC_MAX_CONNECTION_AGE: durationSetting(
    'time after which a client is told to connect anew, give or take a tenth; 0 = never',
    { min: '0s', max: '480h', fallback: '24h' },
  ),
  GRPC_MAX_CONNECTION_AGE_GRACE: durationSetting(
    'time after which such a connection is cut though calls are under way',
    { min: '0s', max: '480h', fallback: '1h' },
  ),
} as const

/** What these settings say. */
export type GrpcConfig = ConfigOf<typeof grpcSettings>
