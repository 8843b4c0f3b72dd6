// The create pods: the API, the pages and the admin API on Cassandra, with codes from a pool. They
// have no code secret: only the refill Job generates codes.
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { noLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import * as http from '../http/settings.ts'
import { runInBackground } from '../resilience/background.ts'
import type { ConfigOf } from '../config/config.ts'
import { monotonicMs } from '../resilience/deadline.ts'
import { defineRole, rejectArguments } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { createCodeSupply } from '../create/code-supply.ts'
import { createLinkCreator } from '../create/create-link.ts'
import { createCacheInvalidator } from '../admin/invalidate-link.ts'
import { createLinkOperations } from '../admin/set-link-state.ts'
import { codePoolSetting } from '../create/settings.ts'
import { retryUntilStopped } from '../resilience/retry-until-deadline.ts'
import { watchPools } from '../pools/watch-pools.ts'
import { openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore, readPools } from '../stores/cassandra/code-store.ts'
import { createCassandraIntentStore } from '../stores/cassandra/intent-store.ts'
import { createCassandraLinkStore } from '../stores/cassandra/link-store.ts'
import { cassandraSettings, cassandraDependentSettings } from '../stores/cassandra/settings.ts'
import {
  cacheSettings,
  cacheDependentSettings,
  planLinkCache,
} from '../stores/redis/cache-settings.ts'
import { openLinkCache } from '../stores/redis/open-link-cache.ts'

const settings = {
  BASE_URL: http.publicBaseSetting,
  OWN_HOSTS: http.ownHostsSetting,
  PORT: http.publicPortSetting,
  ADMIN_PORT: http.adminPortSetting,
  ADMIN_TOKEN: http.adminTokenSetting,
  CODE_POOL: codePoolSetting,
  ...cassandraSettings,
  ...cacheSettings,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

/** How often the levels of the pools are read for metrics. */
const LEVELS_EVERY_MS = 15_000

/** `create`. */
export const role = defineRole({
  usage: 'create',
  about:
    'Serves POST /v1/urls and the pages, with links in Cassandra and codes from the pool\n' +
    'CODE_POOL. The admin API is disabled unless ADMIN_TOKEN is set.',
  settings,
  dependent: [...cassandraDependentSettings, ...cacheDependentSettings],
  run: async ({ config, args }) => {
    rejectArguments('create', args)
    const service = await openService({
      role: 'create',
      config,
      dependencies: ['store', 'cache'],
    })
    attach({ config, service, components: openComponents(config, service) })
    return { stop: service.stop }
  },
})

type Components = ReturnType<typeof openComponents>

/** Opens store and cache, which may be unavailable yet, and their background tasks. */
function openComponents(config: Config, service: Service) {
  const { log, metrics, health } = service
  const nowMs = Date.now
  const stopping = new AbortController()
  const { signal } = stopping
  const onError = (task: string) => (error: unknown) => {
    metrics.backgroundFailures.inc({ task })
    log.error({ err: error, task }, 'background task failed')
  }
  const cassandra = openCassandra({
    config,
    metrics,
    log,
    onState: (state) => {
      health.note('store', state)
      if (state !== 'up') supply.failWaiting()
    },
    signal,
  })
  const cache = openLinkCache({
    redis: planLinkCache(config),
    metrics,
    log,
    onState: (state) => {
      health.note('cache', state)
    },
  })
  const codes = createCassandraCodeStore(cassandra)
  const links = createCassandraLinkStore(cassandra)
  const invalidator = createCacheInvalidator({
    cache,
    monotonicMs,
    metrics,
    onError: onError('invalidate-link'),
  })
  const pools = watchPools({
    readPools: () => readPools(cassandra),
    marksOf: (row) => row,
    metrics,
    nowMs,
  })
  const pool = config.CODE_POOL
  service.onStop(() => cassandra.close())
  service.onStop(() => cache.close())
  service.onStop(() => invalidator.stop())
  const levelsTask = runInBackground({
    everyMs: LEVELS_EVERY_MS,
    task: async () => {
      if (cassandra.isUp()) await pools.report()
    },
    onError: onError('read-pools'),
  })
  service.onStop(() => levelsTask.stop())
  const supply = createCodeSupply({
    codes,
    pool,
    signal,
    monotonicMs,
    metrics,
    onError: onError('claim-block'),
  })
  service.onStop(() => {
    stopping.abort()
    return Promise.resolve()
  })
  service.readyAfter(retryUntilStopped({ signal }, () => codes.readPoolSerial(pool)))
  const intents = createCassandraIntentStore(cassandra)
  const isStoreAvailable = () => cassandra.isUp()
  return { links, intents, pools, supply, invalidator, nowMs, isStoreAvailable, onError }
}

/** Attaches the apps to their listeners. */
function attach(given: { config: Config; service: Service; components: Components }): void {
  const { config, service, components } = given
  const { log, metrics, health, publicHttp, adminHttp } = service
  const { links, intents, supply, nowMs, invalidator } = components
  const { BASE_URL: baseUrl, ADMIN_TOKEN: token } = config
  const createDeps = {
    links,
    intents,
    supply,
    nowMs,
    monotonicMs,
    metrics,
    onStored: (code: string) => invalidator.invalidate(code),
    isStoreAvailable: components.isStoreAvailable,
    onErrorAfterResponse: components.onError('create-link'),
  }
  const creating = {
    baseUrl,
    schema: createBodySchema(http.ownHostsOf(baseUrl, config.OWN_HOSTS)),
    limits: noLimits, // the edge applies them
    create: createLinkCreator(createDeps),
    metrics,
    log,
  }
  const operations = createLinkOperations({
    links,
    nowMs,
    onChanged: (code) => invalidator.confirm(code),
  })
  const api = { operations, readPools: components.pools.report, nowMs }
  publicHttp.attach({ baseUrl, app: createCreateApp(creating) })
  adminHttp.attach({
    baseUrl,
    app: createAdminApp({
      health,
      metrics,
      log,
      baseUrl,
      token,
      ...(token !== undefined && { api }), // without a token the API is disabled
    }),
  })
}
