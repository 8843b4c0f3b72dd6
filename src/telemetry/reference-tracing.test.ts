// The TRACING_* settings of envoyproxy/ratelimit as OTEL_* variables.
import { describe, expect, test } from '@jest/globals'
import { openTelemetryVariables as variablesOf } from './reference-tracing.ts'

const openTelemetryVariables = (env: Record<string, string>) => variablesOf(env, 'ratelimit')

const on = { TRACING_ENABLED: 'true' }

test('without TRACING_ENABLED the other settings have no effect', () => {
  expect(openTelemetryVariables({ TRACING_SERVICE_NAME: 'limits' })).toEqual({})
  expect(openTelemetryVariables({ TRACING_ENABLED: '', TRACING_SAMPLING_RATE: '0' })).toEqual({})
})

test.each(['false', '0', 'F'])('TRACING_ENABLED=%s disables tracing', (TRACING_ENABLED) => {
  const env = { TRACING_ENABLED, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }
  expect(openTelemetryVariables(env)).toEqual({ OTEL_SDK_DISABLED: 'true' })
})

test.each([
  ['ratelimit', true],
  ['/bin/ratelimit', true],
  ['redirect', false],
  [undefined, false],
])('the settings apply to the limiter alone: %s', (program, applies) => {
  const count = Object.keys(variablesOf(on, program)).length
  expect(count > 0).toBe(applies)
  expect(variablesOf({ TRACING_ENABLED: 'false' }, program)).toEqual(
    applies ? { OTEL_SDK_DISABLED: 'true' } : {},
  )
})

test('the defaults are those of envoyproxy/ratelimit', () => {
  expect(openTelemetryVariables({ TRACING_ENABLED: 'T' })).toEqual({
    OTEL_SERVICE_NAME: 'RateLimit',
    OTEL_RESOURCE_ATTRIBUTES: '',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '1',
  })
})

test('the settings of Envoy Gateway name the service, its namespace and its instance', () => {
  const env = {
    ...on,
    TRACING_SERVICE_NAME: 'envoy-ratelimit',
    TRACING_SERVICE_NAMESPACE: 'envoy-gateway-system',
    TRACING_SERVICE_INSTANCE_ID: 'envoy-ratelimit-a,b=1',
    TRACING_SAMPLING_RATE: '0.6',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://trace-collector:4317',
  }
  expect(openTelemetryVariables(env)).toEqual({
    OTEL_SERVICE_NAME: 'envoy-ratelimit',
    OTEL_RESOURCE_ATTRIBUTES:
      'service.namespace=envoy-gateway-system,service.instance.id=envoy-ratelimit-a%2Cb%3D1',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.6',
  })
})

describe('the protocol', () => {
  test.each([
    ['grpc', 'grpc', 'http://localhost:4317'],
    ['gRPC', 'grpc', 'http://localhost:4317'],
    ['http', 'http/protobuf', 'http://localhost:4318'],
  ])('%s', (TRACING_EXPORTER_PROTOCOL, protocol, endpoint) => {
    expect(openTelemetryVariables({ ...on, TRACING_EXPORTER_PROTOCOL })).toMatchObject({
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    })
  })
})

describe('OTEL_* variables', () => {
  const own = {
    OTEL_SERVICE_NAME: 'own',
    OTEL_RESOURCE_ATTRIBUTES: 'service.namespace=own,team=edge',
    OTEL_TRACES_SAMPLER: 'always_on',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces',
  }
  test('stay as they are if no TRACING_* setting replaces them', () => {
    expect(openTelemetryVariables({ ...on, ...own })).toEqual({
      OTEL_SERVICE_NAME: 'own',
      OTEL_RESOURCE_ATTRIBUTES: 'service.namespace=own,team=edge',
    })
  })
  test('are replaced by the TRACING_* settings', () => {
    const given = {
      TRACING_SERVICE_NAME: 'limits',
      TRACING_SERVICE_NAMESPACE: 'shop',
      TRACING_SAMPLING_RATE: '0',
    }
    expect(openTelemetryVariables({ ...on, ...own, ...given })).toEqual({
      OTEL_SERVICE_NAME: 'limits',
      OTEL_RESOURCE_ATTRIBUTES: 'service.namespace=own,team=edge,service.namespace=shop',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    })
  })
})
