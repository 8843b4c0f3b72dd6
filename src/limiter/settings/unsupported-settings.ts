// Two lists of settings of envoyproxy/ratelimit that Curtail does not support: a setting in the
// first aborts startup with a reason, unless it is false; one in the second has no effect.
import * as z from 'zod'
import type { Setting } from '../../config/config.ts'
import { integerSetting, optionalString, stringSetting } from '../../config/settings.ts'

/** Flags that must be unset or false. */
export const unsupportedSettings = {
  USE_DOG_STATSD: unsupported('statistics are exported to statsd and Prometheus, not to DogStatsD'),
  PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS: unsupported(
    'times are in seconds, the base unit of Prometheus',
  ),
} as const

function unsupported(reason: string): Setting<undefined> {
  const off = z.enum(['0', 'f', 'F', 'FALSE', 'false', 'False'])
  return {
    about: 'not supported',
    allowed: `unset or false, since ${reason}`,
    fallback: 'unset',
    schema: off.optional().transform(() => undefined),
  }
}

const NO_EFFECT = 'has no effect'
const ONE_CONNECTION = `${NO_EFFECT}: one connection carries all calls`
const ONE_SCRIPT = `${NO_EFFECT}: the calls of one event-loop turn are sent to Redis together`
const PARALLEL = `${NO_EFFECT}: the scripts for the hash slots of a call always run in parallel`
const NO_WAIT = `${NO_EFFECT}: startup never waits for Redis`

const poolSize = integerSetting(ONE_CONNECTION, { min: 1, max: 999_999, fallback: 10 })
const pipelineLimit = integerSetting(ONE_CONNECTION, { min: 0, max: 999_999, fallback: 0 })
const memcache = optionalString(`${NO_EFFECT}: BACKEND_TYPE is redis`)
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
  LOG_FORMAT: stringSetting(`${NO_EFFECT}: the log always consists of JSON lines`, 'json'),
  PROMETHEUS_MAPPER_YAML: optionalString(`${NO_EFFECT}: the names of the metrics are fixed`),
  USE_DOG_STATSD_MOGRIFIERS: optionalString(`${NO_EFFECT}: statistics are not sent to DogStatsD`),
  MEMCACHE_HOST_PORT: memcache,
  MEMCACHE_MAX_IDLE_CONNS: memcache,
  MEMCACHE_SRV: memcache,
  MEMCACHE_SRV_REFRESH: memcache,
  MEMCACHE_TLS: memcache,
  MEMCACHE_TLS_CLIENT_CERT: memcache,
  MEMCACHE_TLS_CLIENT_KEY: memcache,
  MEMCACHE_TLS_CACERT: memcache,
  MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION: memcache,
} as const
