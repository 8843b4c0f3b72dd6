// Translates the TRACING_* settings of envoyproxy/ratelimit into the OTEL_* variables that the
// OpenTelemetry SDK reads.

/** Booleans in the syntax of Go's strconv.ParseBool. */
const ON = /^(1|t|T|TRUE|true|True)$/
const OFF = /^(0|f|F|FALSE|false|False)$/

/** The variables of a process; an empty one counts as unset. */
type Variables = Readonly<Record<string, string | undefined>>

/** The first arguments of a process that runs the role `ratelimit`. */
const PROGRAMS = ['ratelimit', '/bin/ratelimit']

/**
 * The OTEL_* variables that the TRACING_* settings in `env` result in; none if TRACING_ENABLED is
 * not set, or if `program`, the first argument of the process, runs another role. A TRACING_*
 * setting takes precedence over its OTEL_* counterpart. Invalid values are passed on: the role
 * checks its settings after the start of tracing, and reports them.
 */
export function openTelemetryVariables(
  env: Variables,
  program: string | undefined,
): Readonly<Record<string, string>> {
  return PROGRAMS.includes(program ?? '') ? variablesOf(env) : {}
}

function variablesOf(env: Variables): Readonly<Record<string, string>> {
  const enabled = env['TRACING_ENABLED'] ?? ''
  if (OFF.test(enabled)) return { OTEL_SDK_DISABLED: 'true' }
  if (!ON.test(enabled)) return {}
  const given = (name: string) => (env[name] === '' ? undefined : env[name])
  const protocol = given('TRACING_EXPORTER_PROTOCOL')?.toLowerCase()
  const isGrpc = (protocol ?? given('OTEL_EXPORTER_OTLP_PROTOCOL')) === 'grpc'
  const hasEndpoint = ['', 'TRACES_'].some((kind) => given(`OTEL_EXPORTER_OTLP_${kind}ENDPOINT`))
  const rate = given('TRACING_SAMPLING_RATE')
  const hasSampler = rate === undefined && given('OTEL_TRACES_SAMPLER') !== undefined
  return {
    OTEL_SERVICE_NAME: given('TRACING_SERVICE_NAME') ?? given('OTEL_SERVICE_NAME') ?? 'RateLimit',
    OTEL_RESOURCE_ATTRIBUTES: resourceAttributes(given),
    ...(protocol !== undefined && {
      OTEL_EXPORTER_OTLP_PROTOCOL: isGrpc ? 'grpc' : 'http/protobuf',
    }),
    ...(!hasEndpoint && {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://localhost:${isGrpc ? 4317 : 4318}`,
    }),
    ...(!hasSampler && {
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: rate ?? '1',
    }),
  }
}

/** OTEL_RESOURCE_ATTRIBUTES with the namespace and the instance; the last value of a key counts. */
function resourceAttributes(given: (name: string) => string | undefined): string {
  const attributes = [
    ['service.namespace', given('TRACING_SERVICE_NAMESPACE')],
    ['service.instance.id', given('TRACING_SERVICE_INSTANCE_ID')],
  ].flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${encodeURIComponent(value)}`]))
  return [given('OTEL_RESOURCE_ATTRIBUTES') ?? [], attributes].flat().join(',')
}
