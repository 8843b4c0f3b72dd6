// Settings of envoyproxy/ratelimit for unsupported features: setting one aborts startup with a
// reason, instead of having no effect.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'

const MEMCACHE = 'counters are stored only in Redis, not in memcache'
const XDS = 'rules are read only from files'
const DOGSTATSD = 'statistics are exported to statsd and Prometheus, not to DogStatsD'
const MAPPER = 'the names of Prometheus metrics are fixed, see docs/metrics.md'

/** Settings that must be unset. */
export const unsupportedSettings = {
  MEMCACHE_HOST_PORT: unsupported(MEMCACHE),
  MEMCACHE_MAX_IDLE_CONNS: unsupported(MEMCACHE),
  MEMCACHE_SRV: unsupported(MEMCACHE),
  MEMCACHE_SRV_REFRESH: unsupported(MEMCACHE),
  MEMCACHE_TLS: unsupported(MEMCACHE),
  MEMCACHE_TLS_CLIENT_CERT: unsupported(MEMCACHE),
  MEMCACHE_TLS_CLIENT_KEY: unsupported(MEMCACHE),
  MEMCACHE_TLS_CACERT: unsupported(MEMCACHE),
  MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: unsupported(MEMCACHE),
  CONFIG_GRPC_XDS_NODE_ID: unsupported(XDS),
  CONFIG_GRPC_XDS_NODE_METADATA: unsupported(XDS),
  CONFIG_GRPC_XDS_SERVER_URL: unsupported(XDS),
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: unsupported(XDS),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: unsupported(XDS),
  CONFIG_GRPC_XDS_SERVER_USE_TLS: unsupported(XDS),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: unsupported(XDS),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: unsupported(XDS),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: unsupported(XDS),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: unsupported(XDS),
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: unsupported(XDS),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: unsupported(XDS),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: unsupported(XDS),
  XDS_CLIENT_BACKOFF_JITTER: unsupported(XDS),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: unsupported(XDS),
  USE_DOG_STATSD: unsupportedFlag(DOGSTATSD),
  USE_DOG_STATSD_MOGRIFIERS: unsupported(DOGSTATSD),
  PROMETHEUS_MAPPER_YAML: unsupported(MAPPER),
  PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: unsupportedFlag(
    'times are in seconds, the base unit of Prometheus',
  ),
} as const

function unsupported(reason: string): Setting<undefined> {
  return {
    about: 'not supported',
    allowed: `unset, since ${reason}`,
    fallback: 'unset',
    schema: z.undefined(),
  }
}

/** A flag that may also be false. */
function unsupportedFlag(reason: string): Setting<undefined> {
  return {
    about: 'not supported',
    allowed: `unset or false, since ${reason}`,
    fallback: 'unset',
    schema: z
      .enum(['0', 'f', 'F', 'FALSE', 'false', 'False'])
      .optional()
      .transform(() => undefined),
  }
}
