// The tracing settings of envoyproxy/ratelimit. src/telemetry/reference-tracing.ts reads them when
// tracing starts, before the role; here they are checked and described.
import * as z from 'zod'
import { withDefault } from '../../config/config.ts'
import { flagSetting, numberSetting, optionalString } from '../../config/settings.ts'

const protocols = ['http', 'grpc', 'gRPC'] as const

/** The settings; each takes precedence over its OTEL_* counterpart if TRACING_ENABLED is true. */
export const tracingSettings = {
  TRACING_ENABLED: flagSetting(
    'whether calls are traced; if unset, calls are traced if OTEL_EXPORTER_OTLP_ENDPOINT is set',
    false,
  ),
  TRACING_SERVICE_NAME: withDefault({
    about: 'service name of the spans, with TRACING_ENABLED',
    allowed: 'a string',
    fallback: 'RateLimit',
    schema: z.string(),
  }),
  TRACING_SERVICE_NAMESPACE: optionalString('service.namespace of the spans, with TRACING_ENABLED'),
  TRACING_SERVICE_INSTANCE_ID: optionalString(
    'service.instance.id of the spans, with TRACING_ENABLED; by default a random UUID',
  ),
  TRACING_EXPORTER_PROTOCOL: withDefault({
    about: 'protocol of the export to OTEL_EXPORTER_OTLP_ENDPOINT, with TRACING_ENABLED',
    allowed: `one of ${protocols.join(', ')}`,
    fallback: 'http',
    schema: z.enum(protocols),
  }),
  TRACING_SAMPLING_RATE: numberSetting(
    'share of the calls without traceparent that are traced, with TRACING_ENABLED',
    { min: 0, max: 1, fallback: 1 },
  ),
} as const
