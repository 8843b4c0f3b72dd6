// The create pods serve the API, the pages and the admin API, with links in Cassandra and codes of
// a pool. They have no code secret: only the refill Job generates codes.
import { adminRoutes } from '../http/admin/api.ts'
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { securityContactSetting } from '../http/create/security-txt.ts'
import { noLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import * as http from '../http/settings.ts'
import { runInBackground } from '../resilience/background.ts'
import type { ConfigOf } from '../config/config.ts'
import { monotonicMs } from '../resilience/deadline.ts'
import { defineRole } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { createCodeSupply } from '../create/code-supply.ts'
import { createBoundedCreate } from '../create/create-link.ts'
import { createCacheInvalidator } from '../admin/invalidate-link.ts'
import { createLinkOperations } from '../admin/set-link-state.ts'
import { createBatchImporter } from '../transfer/import-batch.ts'
import { apiKeysCheck, type ClientKeys, openClientKeys } from '../create/client-keys.ts'
import { apiKeyDependentSettings, apiKeySettings, codePoolSetting } from '../create/settings.ts'
import {
  type BlockedChecks,
  blockedTargetsFiles,
  openBlockedTargets,
} from '../resolve/blocked/open-blocked-targets.ts'
import { blockedTargetsSetting } from '../resolve/settings.ts'
import { retryUntilStopped } from '../resilience/retry-until-deadline.ts'
import { createPoolReporter } from '../pools/pool-reporter.ts'
import { createCassandraCodeStore, readPools } from '../stores/cassandra/code-store.ts'
import { createCassandraIntentStore } from '../stores/cassandra/intent-store.ts'
import { createCassandraReportStore } from '../stores/cassandra/report-store.ts'
import {
  linkStoreDependentSettings,
  linkStoreSettings,
  openLinkStores,
} from '../stores/open-link-stores.ts'

const settings = {
  BASE_URL: http.publicBaseSetting,
  OWN_HOSTS: http.ownHostsSetting,
  PORT: http.publicPortSetting,
  ADMIN_PORT: http.adminPortSetting,
  ADMIN_TOKEN: http.adminTokenSetting,
  CODE_POOL: codePoolSetting,
  ...apiKeySettings,
  BLOCKED_TARGETS: blockedTargetsSetting,
  SECURITY_CONTACT: securityContactSetting,
  ...linkStoreSettings,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

/** The interval at which the levels of the pools are read for metrics. */
const LEVELS_EVERY_MS = 15_000

/** `create`. */
export const role = defineRole({
  name: 'create',
  about:
    'Serves POST /v1/urls and the web pages. Stores links in Cassandra, with codes from the\n' +
    'pool CODE_POOL. Serves the admin API if ADMIN_TOKEN is set.',
  settings,
  dependent: [...linkStoreDependentSettings, http.distinctPorts, apiKeyDependentSettings],
  files: [apiKeysCheck, blockedTargetsFiles],
  run: async ({ config }) => {
    const service = await openService({
      role: 'create',
      config,
      dependencies: ['store', 'cache'],
    })
    // Opened before the stores: once these respond, the process is ready.
    const [keys, blocked] = await Promise.all([
      openClientKeys(config, service, Date.now),
      openBlockedTargets(config.BLOCKED_TARGETS, service),
    ])
    const components = openComponents(config, service)
    attach({ config, service, components, keys, blocked })
    return { stop: service.stop }
  },
})

type Components = ReturnType<typeof openComponents>

/** Opens store and cache, which may still be unavailable, and starts their background tasks. */
function openComponents(config: Config, service: Service) {
  const { metrics, signal, onTaskError } = service
  const nowMs = Date.now
  const { cassandra, cache, links } = openLinkStores(config, service, () => {
    supply.failWaiting()
  })
  const codes = createCassandraCodeStore(cassandra)
  const invalidator = createCacheInvalidator({
    cache,
    monotonicMs,
    metrics,
    onError: onTaskError('invalidate-link'),
  })
  const pools = createPoolReporter({
    readPools: () => readPools(cassandra),
    marksOf: (row) => row,
    metrics,
    nowMs,
  })
  const pool = config.CODE_POOL
  const levelsTask = runInBackground({
    everyMs: LEVELS_EVERY_MS,
    task: async () => {
      if (cassandra.isUp()) await pools.report()
    },
    onError: (error) => {
      // During the stop, a read fails because its connection is closed.
      if (!signal.aborted) onTaskError('read-pools')(error)
    },
  })
  service.onStop(() => {
    void levelsTask.stop() // not awaited: a read may take longer than the rest of the stop
    return Promise.resolve()
  })
  service.onStop(() => invalidator.stop())
  const supply = createCodeSupply({
    codes,
    pool,
    signal,
    monotonicMs,
    metrics,
    onError: onTaskError('claim-block'),
  })
  service.readyAfter(retryUntilStopped({ signal }, () => codes.readPoolSerial(pool)))
  const intents = createCassandraIntentStore(cassandra)
  const reports = createCassandraReportStore(cassandra)
  const isStoreAvailable = () => cassandra.isUp()
  return { links, intents, reports, pools, supply, invalidator, nowMs, isStoreAvailable }
}

/** Attaches the apps to their listeners. */
function attach(given: {
  config: Config
  service: Service
  components: Components
  keys: ClientKeys
  blocked: BlockedChecks
}): void {
  const { config, service, components, keys, blocked } = given
  const { log, metrics, health, publicHttp, adminHttp } = service
  const { links, intents, reports, supply, nowMs, invalidator } = components
  const { BASE_URL: baseUrl, ADMIN_TOKEN: token } = config
  const ownHosts = http.ownHostsOf(baseUrl, config.OWN_HOSTS)
  const createDeps = {
    links,
    intents,
    supply,
    nowMs,
    monotonicMs,
    metrics,
    invalidateCaches: (code: string) => invalidator.invalidate(code),
    isStoreAvailable: components.isStoreAvailable,
    onErrorAfterResponse: service.onTaskError('create-link'),
  }
  const createAppDeps = {
    baseUrl,
    schema: createBodySchema(ownHosts),
    keys,
    limits: noLimits, // the edge applies them
    create: createBoundedCreate(createDeps),
    isBlocked: blocked.linkCreationCheck(),
    ownHosts,
    reports,
    securityContacts: config.SECURITY_CONTACT,
    nowMs,
    metrics,
    log,
  }
  const operations = createLinkOperations({
    links,
    nowMs,
    onChanged: (code) => invalidator.confirm(code),
  })
  const { isStoreAvailable } = createDeps
  const imports = {
    importBatch: createBatchImporter({ ...createDeps, ownHosts }),
    isStoreAvailable,
  }
  const stores = { links, reports, readPools: components.pools.report }
  const api = { operations, ...stores, imports, nowMs, log, lists: config, blocked }
  publicHttp.attach({ baseUrl, app: createCreateApp(createAppDeps) })
  adminHttp.attach({
    baseUrl,
    app: createAdminApp({
      health,
      metrics,
      log,
      baseUrl,
      token,
      // Without a token the API is disabled.
      ...(token !== undefined && { api: adminRoutes(api, baseUrl), changesLinks: true }),
    }),
  })
}
