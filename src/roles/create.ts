// The pods that create: the API, the pages and the admin API, over Cassandra, with codes from a
// pool. They hold no code secret: minting is the refill Job's.
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { createPostLinkLane } from '../http/create/post-link.ts'
import { noLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import * as http from '../http/settings.ts'
import { runInBackground } from '../resilience/background.ts'
import type { ConfigOf } from '../config/config.ts'
import { monotonicMs } from '../resilience/deadline.ts'
import { defineRole, refuseArguments } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { createCodeSupply } from '../create/code-supply.ts'
import { createCreator } from '../create/create-link.ts'
import { createLinkForgetter } from '../admin/invalidate-link.ts'
import { createLinkOperations } from '../admin/set-link-state.ts'
import { codePoolSetting } from '../create/settings.ts'
import { untilAnswered } from '../resilience/retry-until-deadline.ts'
import { watchPools } from '../pools/watch-pools.ts'
import { openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore, readPools } from '../stores/cassandra/code-store.ts'
import { createCassandraIntentStore } from '../stores/cassandra/intent-store.ts'
import { createCassandraLinkStore } from '../stores/cassandra/link-store.ts'
import { cassandraSettings, cassandraTied } from '../stores/cassandra/settings.ts'
import { cacheSettings, cacheTied, planLinkCache } from '../stores/redis/cache-settings.ts'
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
    'CODE_POOL. The admin API is off unless ADMIN_TOKEN is set.',
  settings,
  tied: [...cassandraTied, ...cacheTied],
  run: async ({ config, args }) => {
    refuseArguments('create', args)
    const service = await openService({
      role: 'create',
      config,
      dependencies: ['store', 'cache'],
    })
    attach({ config, service, parts: openParts(config, service) })
    return { stop: service.stop }
  },
})

type Parts = ReturnType<typeof openParts>

/** Store and cache, which may still be away, and what works on them beside the requests. */
function openParts(config: Config, service: Service) {
  const { log, metrics, health } = service
  const nowMs = Date.now
  const ending = new AbortController()
  const { signal } = ending
  const onError = (task: string) => (error: unknown) => {
    metrics.backgroundFailures.inc({ task })
    log.error({ err: error, task }, 'a background task failed')
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
  const forgetter = createLinkForgetter({
    cache,
    monotonicMs,
    metrics,
    onError: onError('forget-link'),
  })
  const pools = watchPools({
    readPools: () => readPools(cassandra),
    marksOf: (row) => row,
    metrics,
    nowMs,
  })
  const pool = config.CODE_POOL
  service.onEnd(() => cassandra.close())
  service.onEnd(() => cache.close())
  service.onEnd(() => forgetter.stop())
  const reading = runInBackground({
    everyMs: LEVELS_EVERY_MS,
    task: async () => {
      if (cassandra.isUp()) await pools.report()
    },
    onError: onError('read-pools'),
  })
  service.onEnd(() => reading.stop())
  const supply = createCodeSupply({
    codes,
    pool,
    signal,
    monotonicMs,
    metrics,
    onError: onError('claim-block'),
  })
  service.onEnd(() => {
    ending.abort()
    return Promise.resolve()
  })
  service.readyAfter(untilAnswered({ signal }, () => codes.readPoolSerial(pool)))
  const intents = createCassandraIntentStore(cassandra)
  const isStoreAvailable = () => cassandra.isUp()
  return { links, intents, pools, supply, forgetter, nowMs, isStoreAvailable, onError }
}

/** Puts the apps on their listeners. */
function attach(given: { config: Config; service: Service; parts: Parts }): void {
  const { config, service, parts } = given
  const { log, metrics, health, publicHttp, adminHttp } = service
  const { links, intents, supply, nowMs, forgetter } = parts
  const { BASE_URL: baseUrl, ADMIN_TOKEN: token } = config
  const createDeps = {
    links,
    intents,
    supply,
    nowMs,
    monotonicMs,
    metrics,
    onStored: (code: string) => forgetter.forget(code),
    isStoreAvailable: parts.isStoreAvailable,
    onLateError: parts.onError('create-link'),
  }
  const creating = {
    baseUrl,
    schema: createBodySchema(http.ownHostsOf(baseUrl, config.OWN_HOSTS)),
    limits: noLimits, // the edge's
    create: createCreator(createDeps),
    metrics,
    log,
  }
  const operations = createLinkOperations({
    links,
    nowMs,
    onChanged: (code) => forgetter.confirm(code),
  })
  const api = { operations, readPools: parts.pools.report, nowMs }
  publicHttp.attach({ baseUrl, app: createCreateApp(creating), lane: createPostLinkLane(creating) })
  adminHttp.attach({
    baseUrl,
    app: createAdminApp({
      health,
      metrics,
      log,
      baseUrl,
      token,
      ...(token !== undefined && { api }), // without a token the API is off, not open
    }),
  })
}
