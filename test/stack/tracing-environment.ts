// The settings with which a pod of the stack sends spans to a collector: the HTTP roles send them
// over HTTP and the limiters over gRPC, so that both protocols are covered.

/** The ports on which a collector receives spans. */
export interface Collector {
  readonly grpcPort: number
  readonly httpPort: number
}

/** A role that sends spans. */
export type TracedRole = 'create' | 'redirect' | 'ratelimit'

/** The settings; none without a collector. */
export function tracingEnvironment(
  role: TracedRole,
  collector: Collector | undefined,
): Readonly<Record<string, string>> {
  if (collector === undefined) return {}
  const isByGrpc = role === 'ratelimit'
  const port = isByGrpc ? collector.grpcPort : collector.httpPort
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${String(port)}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: isByGrpc ? 'grpc' : 'http/protobuf',
    OTEL_SERVICE_NAME: `curtail-${role}`,
    OTEL_BSP_SCHEDULE_DELAY: '500',
  }
}
