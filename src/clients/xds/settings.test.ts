// The settings of the connection to the xDS server, in the syntax of envoyproxy/ratelimit.
import { expect, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { dependentXdsSettings, xdsSettings } from './settings.ts'

const read = (env: Readonly<Record<string, string>>) =>
  parseConfig(xdsSettings, env, [dependentXdsSettings])

test('pairs of metadata and headers are parsed', () => {
  const config = read({
    CONFIG_GRPC_XDS_NODE_METADATA: 'team=edge,no-pair,zone=a=b,,empty=',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'Authorization:Bearer a:b, X-Tenant : Shop ',
  })
  expect(config.CONFIG_GRPC_XDS_NODE_METADATA).toEqual(
    new Map([
      ['team', 'edge'],
      ['zone', 'a=b'],
      ['empty', ''],
    ]),
  )
  expect(config.CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS).toEqual(
    new Map([
      ['authorization', 'Bearer a:b'],
      ['x-tenant', 'Shop'],
    ]),
  )
})

test.each([
  ['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', 'no-pair', 'name:value pairs'],
  ['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', 'x y:1', 'current value is hidden'],
  ['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', 'Trace-Bin:1', 'must not end with -bin'],
  ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', '67108865', 'from 0 to 67108864'],
  ['XDS_CLIENT_BACKOFF_INITIAL_INTERVAL', '10', 'a duration'],
])('%s=%s is rejected', (name, value, problem) => {
  expect(() => read({ [name]: value })).toThrow(problem)
})

test('a certificate requires its key, but only with TLS', () => {
  const env = { CONFIG_GRPC_XDS_CLIENT_TLS_CERT: 'tls.crt' }
  expect(() => read({ ...env, CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' })).toThrow('set both')
  expect(read(env).CONFIG_GRPC_XDS_SERVER_USE_TLS).toBe(false)
})
