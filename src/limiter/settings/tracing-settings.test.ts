// The tracing settings of envoyproxy/ratelimit: defaults, and accepted values.
import { expect, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { tracingSettings } from './tracing-settings.ts'

const parsed = (env: Readonly<Record<string, string>>) => parseConfig(tracingSettings, env)

test('the defaults are those of envoyproxy/ratelimit', () => {
  expect(parsed({})).toEqual({
    TRACING_ENABLED: false,
    TRACING_SERVICE_NAME: 'RateLimit',
    TRACING_SERVICE_NAMESPACE: undefined,
    TRACING_SERVICE_INSTANCE_ID: undefined,
    TRACING_EXPORTER_PROTOCOL: 'http',
    TRACING_SAMPLING_RATE: 1,
  })
})

test.each([
  ['TRACING_ENABLED', 'true', true],
  ['TRACING_SERVICE_NAME', 'limits', 'limits'],
  ['TRACING_SERVICE_NAMESPACE', 'edge', 'edge'],
  ['TRACING_SERVICE_INSTANCE_ID', '7', '7'],
  ['TRACING_EXPORTER_PROTOCOL', 'http', 'http'],
  ['TRACING_EXPORTER_PROTOCOL', 'grpc', 'grpc'],
  ['TRACING_EXPORTER_PROTOCOL', 'gRPC', 'gRPC'],
  ['TRACING_SAMPLING_RATE', '0', 0],
  ['TRACING_SAMPLING_RATE', '0.25', 0.25],
])('%s=%s', (name, value, expected) => {
  expect(parsed({ [name]: value })).toHaveProperty(name, expected)
})

test.each([
  ['TRACING_ENABLED', 'yes'],
  ['TRACING_EXPORTER_PROTOCOL', 'udp'],
  ['TRACING_SAMPLING_RATE', '1.1'],
  ['TRACING_SAMPLING_RATE', '-1'],
])('%s=%s is rejected', (name, value) => {
  expect(() => parsed({ [name]: value })).toThrow(`${name} must be `)
})

test('every setting is described', () => {
  for (const { about, allowed, fallback } of Object.values(tracingSettings))
    expect([about, allowed, fallback]).not.toContain('')
  expect(tracingSettings.TRACING_EXPORTER_PROTOCOL.allowed).toBe('one of http, grpc, gRPC')
})
