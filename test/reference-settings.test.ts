// The settings of envoyproxy/ratelimit are settings of the role `ratelimit`: with their defaults,
// and with the values that Envoy Gateway and the samples of Istio and of docker-compose set.
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from '@jest/globals'
import { parseConfig } from '../src/config/config.ts'
import { role } from '../src/roles/ratelimit.ts'
import {
  envoyGatewayContainer,
  envoyGatewayTracing,
} from './kit/ratelimit/envoy-gateway-deployment.ts'

/** Every setting of envoyproxy/ratelimit, and its default, as in its settings.go (f2fb157). */
const reference = `
  HOST=0.0.0.0 PORT=8080 DEBUG_HOST=0.0.0.0 DEBUG_PORT=6070 GRPC_UDS= GRPC_HOST=0.0.0.0
  GRPC_PORT=8081 GRPC_MAX_CONNECTION_AGE=24h GRPC_MAX_CONNECTION_AGE_GRACE=1h
  GRPC_SERVER_USE_TLS=false GRPC_SERVER_TLS_CERT= GRPC_SERVER_TLS_KEY= GRPC_CLIENT_TLS_CACERT=
  GRPC_CLIENT_TLS_SAN= LOG_LEVEL=WARN LOG_FORMAT=text CONFIG_TYPE=FILE
  FORCE_START_WITHOUT_INITIAL_CONFIG=false CONFIG_GRPC_XDS_NODE_ID=default
  CONFIG_GRPC_XDS_NODE_METADATA= CONFIG_GRPC_XDS_SERVER_URL=localhost:18000
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=3s CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=
  CONFIG_GRPC_XDS_SERVER_USE_TLS=false CONFIG_GRPC_XDS_CLIENT_TLS_CERT=
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY= CONFIG_GRPC_XDS_SERVER_TLS_CACERT=
  CONFIG_GRPC_XDS_SERVER_TLS_SAN= XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=10s
  XDS_CLIENT_BACKOFF_MAX_INTERVAL=60s XDS_CLIENT_BACKOFF_RANDOM_FACTOR=0.5
  XDS_CLIENT_BACKOFF_JITTER=true XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES= USE_DOG_STATSD=false
  USE_DOG_STATSD_MOGRIFIERS= USE_STATSD=true STATSD_HOST=localhost STATSD_PORT=8125 EXTRA_TAGS=
  STATS_FLUSH_INTERVAL=10s DISABLE_STATS=false USE_PROMETHEUS=false PROMETHEUS_ADDR=:9090
  PROMETHEUS_PATH=/metrics PROMETHEUS_MAPPER_YAML= PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=false
  RUNTIME_ROOT=/srv/runtime_data/current RUNTIME_SUBDIRECTORY= RUNTIME_APPDIRECTORY=config
  RUNTIME_IGNOREDOTFILES=false RUNTIME_WATCH_ROOT=true EXPIRATION_JITTER_MAX_SECONDS=300
  LOCAL_CACHE_SIZE_IN_BYTES=0 NEAR_LIMIT_RATIO=0.8 CACHE_KEY_PREFIX= BACKEND_TYPE=redis
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=false LIMIT_RESPONSE_HEADERS_ENABLED=false
  LIMIT_LIMIT_HEADER=RateLimit-Limit LIMIT_REMAINING_HEADER=RateLimit-Remaining
  LIMIT_RESET_HEADER=RateLimit-Reset HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=false
  REDIS_SOCKET_TYPE=unix REDIS_TYPE=SINGLE REDIS_URL=/var/run/nutcracker/ratelimit.sock
  REDIS_POOL_SIZE=10 REDIS_AUTH= REDIS_TLS=false REDIS_TLS_CLIENT_CERT= REDIS_TLS_CLIENT_KEY=
  REDIS_TLS_CACERT= REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=false REDIS_PIPELINE_WINDOW=0
  REDIS_PIPELINE_LIMIT=0 REDIS_CLUSTER_PIPELINE_PARALLELISM=1 REDIS_PERSECOND=false
  REDIS_PERSECOND_SOCKET_TYPE=unix REDIS_PERSECOND_TYPE=SINGLE
  REDIS_PERSECOND_URL=/var/run/nutcracker/ratelimitpersecond.sock REDIS_PERSECOND_POOL_SIZE=10
  REDIS_PERSECOND_AUTH= REDIS_PERSECOND_TLS=false REDIS_SENTINEL_AUTH=
  REDIS_PERSECOND_SENTINEL_AUTH= REDIS_PERSECOND_PIPELINE_WINDOW=0
  REDIS_PERSECOND_PIPELINE_LIMIT=0 REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=1
  REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=false REDIS_TIMEOUT=10s REDIS_PERSECOND_TIMEOUT=10s
  REDIS_POOL_ON_EMPTY_BEHAVIOR=WAIT REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR=WAIT
  REDIS_STARTUP_INITIAL_INTERVAL=1s REDIS_STARTUP_MAX_INTERVAL=30s
  REDIS_STARTUP_MAX_ELAPSED_TIME=0 MEMCACHE_HOST_PORT= MEMCACHE_MAX_IDLE_CONNS=2 MEMCACHE_SRV=
  MEMCACHE_SRV_REFRESH=0 MEMCACHE_TLS=false MEMCACHE_TLS_CLIENT_CERT= MEMCACHE_TLS_CLIENT_KEY=
  MEMCACHE_TLS_CACERT= MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION=false SHADOW_MODE=false
  QUOTA_MODE=false RESPONSE_DYNAMIC_METADATA=false MERGE_DOMAIN_CONFIG=false TRACING_ENABLED=false
  TRACING_SERVICE_NAME=RateLimit TRACING_SERVICE_NAMESPACE= TRACING_SERVICE_INSTANCE_ID=
  TRACING_EXPORTER_PROTOCOL=http TRACING_SAMPLING_RATE=1`

/** Settings from a list of `NAME=value`, separated by white space. */
function settingsOf(list: string): Record<string, string> {
  const pairs = list.trim().split(/\s+/)
  return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2))) as Record<
    string,
    string
  >
}

test('every setting of envoyproxy/ratelimit is known, and its default is valid', () => {
  const settings = settingsOf(reference)
  expect(Object.keys(settings)).toHaveLength(114)
  const known = Object.keys(role.settings)
  expect(Object.keys(settings).filter((name) => !known.includes(name))).toEqual([])
  expect(() => parseConfig(role.settings, settings)).not.toThrow()
})

test('the defaults are those of envoyproxy/ratelimit, except for these', () => {
  const settings = settingsOf(reference)
  const { REDIS_URL = '' } = settings // required: it has no default
  const ours: Record<string, unknown> = parseConfig(role.settings, { REDIS_URL })
  const theirs: Record<string, unknown> = parseConfig(role.settings, settings)
  const names = Object.keys(settings).filter((name) => !isDeepStrictEqual(ours[name], theirs[name]))
  const expected = [
    // docs/drop-in.md explains these.
    ...['LOG_LEVEL', 'LOG_FORMAT', 'REDIS_TIMEOUT', 'REDIS_PERSECOND_TIMEOUT'],
    // Without a value, these mean the same: a path is a unix socket, and Redis is a single server.
    ...['REDIS_SOCKET_TYPE', 'REDIS_PERSECOND_SOCKET_TYPE'],
    ...['REDIS_TYPE', 'REDIS_PERSECOND_TYPE', 'REDIS_PERSECOND_URL'],
  ]
  const hasEffect = (name: string) => !name.startsWith('MEMCACHE_')
  expect(names.filter(hasEffect).toSorted()).toEqual(expected.toSorted())
})

/** Names in the environment that neither Curtail nor envoyproxy/ratelimit reads. */
const unread = ['GRPC_SERVER_TLS_CA_CERT']

const gateway = envoyGatewayContainer.env

test.each([
  ['the Deployment of Envoy Gateway', gateway],
  ['Envoy Gateway with tracing', { ...gateway, ...envoyGatewayTracing }],
  [
    'Envoy Gateway with Redis over TLS',
    {
      ...gateway,
      USE_STATSD: 'true',
      REDIS_TYPE: 'sentinel',
      REDIS_AUTH: 'redis_auth_password',
      REDIS_TLS: 'true',
      REDIS_TLS_CLIENT_CERT: '/redis-certs/tls.crt',
      REDIS_TLS_CLIENT_KEY: '/redis-certs/tls.key',
    },
  ],
  [
    'the sample of Istio',
    settingsOf(`LOG_LEVEL=debug REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 USE_STATSD=false
      RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit RUNTIME_WATCH_ROOT=false
      RUNTIME_IGNOREDOTFILES=true HOST=:: GRPC_HOST=::`),
  ],
  [
    'docker-compose-example.yml',
    settingsOf(`USE_STATSD=true STATSD_HOST=statsd STATSD_PORT=9125 LOG_LEVEL=debug
      REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit
      RUNTIME_WATCH_ROOT=false CONFIG_TYPE=FILE CONFIG_GRPC_XDS_NODE_ID=test-node-id
      CONFIG_GRPC_XDS_SERVER_URL=ratelimit-xds-config-server:18000`),
  ],
])('the settings of %s are known and valid', (_, settings) => {
  const known = [...Object.keys(role.settings), ...unread]
  expect(Object.keys(settings).filter((name) => !known.includes(name))).toEqual([])
  expect(() => parseConfig(role.settings, settings)).not.toThrow()
})
