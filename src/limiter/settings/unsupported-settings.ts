// Two lists of settings of envoyproxy/ratelimit that Curtail does not support: a setting in the
// first aborts startup with a reason; one in the second is accepted and has no effect.
import { z } from 'zod'
import { type Setting, withDefault } from '../../config/config.ts'
import {
  flagSetting,
  integerSetting,
  numberSetting,
  optionalString,
  stringSetting,
} from '../../config/settings.ts'

const namesByReason = {
  'counters are stored only in Redis, not in memcache': `
    MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS
    MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_CACERT
    MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION`,
  'rules are read from files, not from xDS': `
    CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA CONFIG_GRPC_XDS_SERVER_URL
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS
    CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL
    XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES`,
  'statistics are exported to statsd and Prometheus, not to DogStatsD':
    'USE_DOG_STATSD USE_DOG_STATSD_MOGRIFIERS',
  'the names of Prometheus metrics are fixed, see docs/metrics.md': 'PROMETHEUS_MAPPER_YAML',
  'times are in seconds, the base unit of Prometheus': 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
}

/** Flags, which may also be false. */
const flags = ['USE_DOG_STATSD', 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS']

/** Settings that must be unset. */
export const unsupportedSettings = Object.fromEntries(
  Object.entries(namesByReason).flatMap(([reason, names]) =>
    names.split(/\s+/).flatMap((name) => (name === '' ? [] : [[name, unsupported(name, reason)]])),
  ),
) as Readonly<Record<string, Setting<undefined>>>

function unsupported(name: string, reason: string): Setting<undefined> {
  const isFlag = flags.includes(name)
  const off = z.enum(['0', 'f', 'F', 'FALSE', 'false', 'False'])
  return {
    about: 'not supported',
    allowed: `unset${isFlag ? ' or false' : ''}, since ${reason}`,
    fallback: 'unset',
    schema: isFlag ? off.optional().transform(() => undefined) : z.undefined(),
  }
}

const NO_EFFECT = 'accepted for compatibility, without effect'
const ATTRIBUTES = `${NO_EFFECT}: see OTEL_RESOURCE_ATTRIBUTES`
const ONE_CONNECTION = 'has no effect: one connection carries all calls'
const ONE_SCRIPT = 'has no effect: the calls of one event-loop turn share a script'
const PARALLEL = 'has no effect: the scripts for the hash slots of a call always run in parallel'
const NO_WAIT = 'has no effect: startup never waits for Redis'

const poolSize = integerSetting(ONE_CONNECTION, { min: 1, max: 999_999, fallback: 10 })
const pipelineLimit = integerSetting(ONE_CONNECTION, { min: 0, max: 999_999, fallback: 0 })
const parallelism = integerSetting(PARALLEL, { min: 0, max: 999_999, fallback: 1 })

/** Settings that are accepted and have no effect. */
export const ignoredSettings = {
  EXPIRATION_JITTER_MAX_SECONDS: integerSetting(`${NO_EFFECT}: counters expire without jitter`, {
    min: 0,
    max: 999_999_999,
    fallback: 300,
  }),
  REDIS_POOL_SIZE: poolSize,
  REDIS_PERSECOND_POOL_SIZE: poolSize,
  REDIS_PIPELINE_WINDOW: stringSetting(ONE_SCRIPT, '0'),
  REDIS_PERSECOND_PIPELINE_WINDOW: stringSetting(ONE_SCRIPT, '0'),
  REDIS_PIPELINE_LIMIT: pipelineLimit,
  REDIS_PERSECOND_PIPELINE_LIMIT: pipelineLimit,
  REDIS_CLUSTER_PIPELINE_PARALLELISM: parallelism,
  REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: parallelism,
  REDIS_POOL_ON_EMPTY_BEHAVIOR: stringSetting(ONE_CONNECTION, 'WAIT'),
  REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: stringSetting(ONE_CONNECTION, 'WAIT'),
  REDIS_STARTUP_INITIAL_INTERVAL: stringSetting(NO_WAIT, '1s'),
  REDIS_STARTUP_MAX_INTERVAL: stringSetting(NO_WAIT, '30s'),
  REDIS_STARTUP_MAX_ELAPSED_TIME: stringSetting(NO_WAIT, '0'),
  LOG_FORMAT: choiceSetting('the log is JSON lines', ['text', 'json'], 'json'),
  TRACING_ENABLED: flagSetting(`${NO_EFFECT}: OTEL_EXPORTER_OTLP_ENDPOINT enables tracing`, false),
  TRACING_SERVICE_NAME: stringSetting(`${NO_EFFECT}: see OTEL_SERVICE_NAME`, 'RateLimit'),
  TRACING_SERVICE_NAMESPACE: optionalString(ATTRIBUTES),
  TRACING_SERVICE_INSTANCE_ID: optionalString(ATTRIBUTES),
  TRACING_EXPORTER_PROTOCOL: choiceSetting(
    'see OTEL_EXPORTER_OTLP_PROTOCOL',
    ['http', 'grpc', 'gRPC'],
    'http',
  ),
  TRACING_SAMPLING_RATE: numberSetting(`${NO_EFFECT}: the caller’s traceparent decides`, {
    min: 0,
    max: 1,
    fallback: 1,
  }),
} as const

function choiceSetting<T extends string>(reason: string, choices: readonly T[], fallback: T) {
  const allowed = `one of ${choices.join(', ')}`
  return withDefault({
    about: `${NO_EFFECT}: ${reason}`,
    allowed,
    fallback,
    schema: z.enum(choices),
  })
}
