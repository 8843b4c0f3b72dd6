// Settings of the reference for what we do not do: one that is set stops the start with a sentence,
// so that nobody believes it to hold.
import { z } from 'zod'
import type { Setting } from '../../config/config.ts'

const MEMCACHE = 'counters live in Redis alone, not in memcache'
const XDS = 'rules come from files alone, not xDS'
const DOGSTATSD = 'statistics go to statsd and Prometheus, not DogStatsD'
const MAPPER = 'the names of our Prometheus metrics are fixed, see docs/metrics.md'

/** Settings that must be unset. */
export const refusedSettings = {
  MEMCACHE_HOST_PORT: refused(MEMCACHE),
  MEMCACHE_MAX_IDLE_CONNS: refused(MEMCACHE),
  MEMCACHE_SRV: refused(MEMCACHE),
  MEMCACHE_SRV_REFRESH: refused(MEMCACHE),
  MEMCACHE_TLS: refused(MEMCACHE),
  MEMCACHE_TLS_CLIENT_CERT: refused(MEMCACHE),
  MEMCACHE_TLS_CLIENT_KEY: refused(MEMCACHE),
  MEMCACHE_TLS_CACERT: refused(MEMCACHE),
  MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: refused(MEMCACHE),
  CONFIG_GRPC_XDS_NODE_ID: refused(XDS),
  CONFIG_GRPC_XDS_NODE_METADATA: refused(XDS),
  CONFIG_GRPC_XDS_SERVER_URL: refused(XDS),
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: refused(XDS),
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: refused(XDS),
  CONFIG_GRPC_XDS_SERVER_USE_TLS: refused(XDS),
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: refused(XDS),
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: refused(XDS),
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: refused(XDS),
  CONFIG_GRPC_XDS_SERVER_TLS_SAN: refused(XDS),
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: refused(XDS),
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: refused(XDS),
  XDS_CLIENT_BACKOFF_RANDOM_FACTOR: refused(XDS),
  XDS_CLIENT_BACKOFF_JITTER: refused(XDS),
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: refused(XDS),
  USE_DOG_STATSD: refusedFlag(DOGSTATSD),
  USE_DOG_STATSD_MOGRIFIERS: refused(DOGSTATSD),
  PROMETHEUS_MAPPER_YAML: refused(MAPPER),
  PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: refusedFlag(
    'times are seconds, as Prometheus wants them',
  ),
} as const

function refused(why: string): Setting<undefined> {
  return {
    about: 'not taken',
    allowed: `unset, since ${why}`,
    fallback: 'unset',
    schema: z.undefined(),
  }
}

/** One that may also say that it is off. */
function refusedFlag(why: string): Setting<undefined> {
  return {
    about: 'not taken',
    allowed: `unset or false, since ${why}`,
    fallback: 'unset',
    schema: z
      .enum(['0', 'f', 'F', 'FALSE', 'false', 'False'])
      .optional()
      .transform(() => undefined),
  }
}
