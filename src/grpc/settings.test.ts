// The listener's settings have the defaults of envoyproxy/ratelimit; an invalid one is rejected.
import { expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../config/config.ts'
import { grpcSettings } from './settings.ts'

test('unset settings have the defaults', () => {
  expect(parseConfig(grpcSettings, {})).toEqual({
    GRPC_HOST: '0.0.0.0',
    GRPC_PORT: 8081,
    GRPC_UDS: '',
    GRPC_SERVER_USE_TLS: false,
    GRPC_SERVER_TLS_CERT: '',
    GRPC_SERVER_TLS_KEY: '',
    GRPC_CLIENT_TLS_CACERT: '',
    GRPC_CLIENT_TLS_SAN: '',
    GRPC_MAX_CONNECTION_AGE: 86_400_000,
    GRPC_MAX_CONNECTION_AGE_GRACE: 3_600_000,
  })
})

test('an age longer than a timer allows is rejected', () => {
  const env = { GRPC_MAX_CONNECTION_AGE: '1000h', GRPC_MAX_CONNECTION_AGE_GRACE: 'soon' }
  let problems: readonly string[] = []
  try {
    parseConfig(grpcSettings, env)
  } catch (error) {
    if (error instanceof ConfigError) ({ problems } = error)
  }
  const allowed = 'must be a duration such as 1h30m or 500ms, from 0s to 480h'
  expect(problems).toEqual([
    `GRPC_MAX_CONNECTION_AGE ${allowed}: current value is "1000h"`,
    `GRPC_MAX_CONNECTION_AGE_GRACE ${allowed}: current value is "soon"`,
  ])
})
