// The rate-limit service for Envoy: rules from files or an xDS server, counters in Redis, decisions
// by a deadline.
import { openAdsClient } from '../clients/xds/ads-client.ts'
import { dependentXdsSettings, xdsFiles, xdsSettings } from '../clients/xds/settings.ts'
import * as headers from '../limiter/decide/client-response.ts'
import { createDecideLimits, type DecideLimitsDeps } from '../limiter/decide/decide-limits.ts'
import { createExplainLimits, type ExplainLimits } from '../limiter/decide/explain-limits.ts'
import { createDenyCache, type DenyCache } from '../limiter/decide/deny-cache.ts'
import { type GuardedStore, guardStore } from '../limiter/decide/guard-store.ts'
import { createStoreStateReports } from '../limiter/decide/report-store-state.ts'
import { createLocalShares } from '../limiter/decide/local-shares.ts'
import { createResetLimits, type ResetLimits } from '../limiter/decide/reset-limits.ts'
import { ignoredSettings, unsupportedSettings } from '../limiter/settings/unsupported-settings.ts'
import { type LoadedRules, openRules, ruleFiles } from '../limiter/rules/load-rules.ts'
import { RULES_TYPE_URL } from '../limiter/rules/version-parser.ts'
import { openXdsRules } from '../limiter/rules/xds-rules.ts'
import { trackStoreHealth } from '../limiter/decide/store-health.ts'
import { AUDIT_TYPE_URL } from '../limiter/stats/audit-counts.ts'
import { createRecorder, startLoggingTopValues } from '../limiter/stats/record-decisions.ts'
import { RuleStats } from '../limiter/stats/rule-stats.ts'
import * as limiter from '../limiter/settings/settings.ts'
import { tracingSettings } from '../limiter/settings/tracing-settings.ts'
import { exportToStatsd } from '../limiter/stats/export-to-statsd.ts'
import { connectMetrics, renderStats } from '../limiter/stats/render-stats.ts'
import { grpcDependentSettings, grpcSettings } from '../grpc/settings.ts'
import { boundKinds } from '../grpc/http2/process-bounds.ts'
import { serveGrpc } from '../grpc/serve.ts'
import { rateLimited } from '../http/limit-requests.ts'
import { PROBLEM_TYPE, renderProblem } from '../http/problem.ts'
import { limiterAdminRoutes } from '../http/ratelimit/admin-routes.ts'
import { openRateLimitListeners } from '../http/ratelimit/listeners.ts'
import { renderRules } from '../http/ratelimit/render-rules.ts'
import { rateLimitHttpSettings } from '../http/ratelimit/settings.ts'
import { adminPortSetting, adminTokenSetting, problemBaseSetting } from '../http/settings.ts'
import type { CounterStore } from '../limits/counter-store.ts'
import type { DecideLimits } from '../limits/verdict.ts'
import type { ConfigOf } from '../config/config.ts'
import { flagSetting } from '../config/settings.ts'
import { monotonicMs, steadyNowUs } from '../resilience/deadline.ts'
import { openProcess, type Process, startProcess } from '../process/open-process.ts'
import { defineRole } from '../process/role.ts'
import { createMemoryCounterStore } from '../stores/memory/counter-store.ts'
import { connectRedis } from '../stores/redis/connection.ts'
import { createRedisCounterStore } from '../stores/redis/counter-store.ts'
import { logReloads } from '../stores/redis/reload-secrets.ts'
import {
  planRedis,
  redisFileChecks,
  type RedisPlan,
  redisSettings,
} from '../stores/redis/settings.ts'

const settings = {
  ...rateLimitHttpSettings,
  ...grpcSettings,
  ADMIN_PORT: adminPortSetting,
  ADMIN_TOKEN: adminTokenSetting,
  BASE_URL: problemBaseSetting,
  ...limiter.ruleFileSettings,
  ...xdsSettings,
  ...limiter.limitSettings,
  ...limiter.responseSettings,
  LIMIT_CLIENT_HEADERS: flagSetting(headers.CLIENT_HEADERS_ABOUT, true),
  ...redisSettings,
  ...limiter.statisticsSettings,
  ...limiter.topValuesSettings,
  LOG_LEVEL: limiter.rateLimitLogLevelSetting,
  ...tracingSettings,
  ...ignoredSettings,
  ...unsupportedSettings,
} as const

type Config = ConfigOf<typeof settings>

interface Context extends Process {
  readonly config: Config
  readonly stats: RuleStats
  /** Aborts when the process must stop. */
  readonly signal: AbortSignal
  /** Called when an input of the health state has changed. */
  readonly healthListeners: (() => void)[]
}

/** `ratelimit`. */
export const role = defineRole({
  name: 'ratelimit',
  about:
    'Runs the rate-limit service for Envoy. It replaces envoyproxy/ratelimit, with the same\n' +
    'settings, ports and rule files. Reads the rules from the folder\n' +
    'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, or, with\n' +
    'CONFIG_TYPE=GRPC_XDS_SOTW, from the xDS server CONFIG_GRPC_XDS_SERVER_URL.',
  settings,
  dependent: [dependentXdsSettings, grpcDependentSettings],
  files: [ruleFiles, redisFileChecks, xdsFiles],
  run: async ({ config, signal }) => {
    const plan = planRedis(config)
    const stats = new RuleStats({ nearLimitRatio: config.NEAR_LIMIT_RATIO })
    const opened = openProcess('ratelimit', config, ['redis', 'rules'])
    const context: Context = { ...opened, config, stats, signal, healthListeners: [] }
    return startProcess(context, () => start(context, plan))
  },
})

async function start(context: Context, plan: RedisPlan): Promise<void> {
  const { config, log, metrics, health, stats, signal, cleanups, healthListeners } = context
  connectMetrics(stats, metrics)
  const cacheBytes = config.LOCAL_CACHE_SIZE_IN_BYTES
  const denyCache = cacheBytes === 0 ? undefined : createDenyCache(cacheBytes)
  const source = await openSource(context, denyCache)
  if (signal.aborted) {
    cleanups.push(source.watch(() => undefined)) // only the returned function closes it
    return
  }
  const store = openStore(context, plan)
  const deps = decideDepsOf(context, { source, store, denyCache })
  const decide = createDecideLimits(deps)
  const explain = createExplainLimits(deps)
  const reset = createResetLimits({ ...deps, store, log })
  const listeners = await openListeners(context, { source, decide, explain, reset })
  cleanups.push(startLoggingTopValues(stats.top, log))
  if (config.USE_STATSD && !config.DISABLE_STATS) cleanups.push(exportToStatsd(context))
  const updateHealth = () => {
    listeners.updateServing()
    const { domains, faults } = source.state()
    metrics.limiterDomains.set(domains)
    health.note('rules', faults.length === 0 ? 'up' : 'down')
    if (hasRequiredRules(config, domains)) health.markReady()
  }
  cleanups.push(source.watch(updateHealth))
  healthListeners.push(updateHealth)
  updateHealth()
  log.info({ ...listeners.ports, domains: source.state().domains }, 'ready')
}

/** Opens the rules that CONFIG_TYPE selects. Throws OperatorError. */
function openSource(context: Context, denyCache: DenyCache | undefined): Promise<LoadedRules> {
  const { config, metrics, stats, log, signal } = context
  const { DEFAULT_ALGORITHM: defaultAlgorithm } = config
  const denyConsumes = !config.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
  const deps = { config, denyConsumes, defaultAlgorithm, stats, denyCache, log }
  if (config.CONFIG_TYPE === 'FILE') return openRules(deps)
  const reports = { typeUrl: AUDIT_TYPE_URL, take: () => stats.audit.take() }
  return openXdsRules({
    ...deps,
    server: config.CONFIG_GRPC_XDS_SERVER_URL,
    signal,
    connect: (on) =>
      openAdsClient({ config, typeUrl: RULES_TYPE_URL, reports, metrics, log, ...on }),
  })
}

/** Maximum number of counters with pending hits, as many as local-shares.ts has reports. */
const PENDING_MAX = 50_000

type LimiterStore = GuardedStore & Pick<CounterStore, 'reset'>

/** Opens Redis behind its circuit breaker, without waiting for a connection. */
function openStore(context: Context, plan: RedisPlan): LimiterStore {
  const { config, log, health, cleanups, healthListeners } = context
  const names = ['counters', ...(plan.perSecond === undefined ? [] : ['per-second'])]
  const storeHealth = trackStoreHealth(names, (state) => {
    health.note('redis', state)
    for (const update of healthListeners) update()
  })
  const { listenersOf, ...reports } = createStoreStateReports({ ...context, storeHealth })
  const watchOf = (redis: string) => ({ ...listenersOf(redis), onReload: logReloads(log, redis) })
  const connection = connectRedis(plan.main, watchOf('counters'))
  const perSecond = plan.perSecond && connectRedis(plan.perSecond, watchOf('per-second'))
  const [{ keyPrefix }, { onFailure }] = [plan, reports]
  const store = createRedisCounterStore({ connection, perSecond, keyPrefix, onFailure })
  const callMsMax = config.LIMIT_DEADLINE_MS
  const guarded = guardStore({ store, callMsMax, nowMs: monotonicMs, ...reports })
  const close = () => {
    store.close()
    return Promise.resolve()
  }
  cleanups.push(close, () => guarded.stop())
  return { ...guarded, reset: (counts) => store.reset(counts) }
}

function decideDepsOf(
  { config, metrics, stats }: Context,
  given: { source: LoadedRules; store: LimiterStore; denyCache: DenyCache | undefined },
): DecideLimitsDeps {
  const { source, store, denyCache } = given
  const top = config.LIMIT_TOP_VALUES ? stats.top : undefined
  const { LIMIT_METADATA: hasOwnMetadata, RESPONSE_DYNAMIC_METADATA: hasReferenceMetadata } = config
  const referenceHeaders = config.LIMIT_RESPONSE_HEADERS_ENABLED
    ? {
        limit: config.LIMIT_LIMIT_HEADER,
        remaining: config.LIMIT_REMAINING_HEADER,
        reset: config.LIMIT_RESET_HEADER,
      }
    : undefined
  return {
    rules: () => source.rules(),
    store,
    shares: createLocalShares({
      replicas: config.LIMIT_REPLICAS,
      local: createMemoryCounterStore({ nowUs: steadyNowUs }),
      pending: createMemoryCounterStore({ nowUs: steadyNowUs, countersMax: PENDING_MAX }),
      isUnresponsive: () => store.isUnresponsive(),
      nowUs: steadyNowUs,
    }),
    denyCache,
    record: createRecorder({ stats, top, decisions: metrics.limiterDecisions }),
    onUnknownDomain: (domain) => {
      stats.countUnknownDomain(domain)
    },
    onGlobalShadow: () => {
      stats.service.globalShadowMode++
    },
    renderResponse: headers.createResponseRenderer({
      hasClientHeaders: config.LIMIT_CLIENT_HEADERS,
      referenceHeaders,
      areAllQuotas: config.QUOTA_MODE,
      renderBody: (limit) => ({
        type: PROBLEM_TYPE,
        body: renderProblem(rateLimited(limit), { baseUrl: config.BASE_URL }),
      }),
      nowMs: Date.now,
    }),
    renderMetadata: (source) =>
      headers.renderMetadata({ hasReferenceMetadata, hasOwnMetadata }, source),
    nowUs: steadyNowUs,
    options: {
      areAllShadow: config.SHADOW_MODE,
      areAllQuotas: config.QUOTA_MODE,
      denyConsumes: !config.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
    },
  }
}

/** Whether enough rules are loaded for the process to be ready and healthy. */
function hasRequiredRules(config: Config, domains: number): boolean {
  return domains > 0 || !config.HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED
}

/** Opens all listeners. Throws OperatorError. */
async function openListeners(
  context: Context,
  given: {
    source: LoadedRules
    decide: DecideLimits
    explain: ExplainLimits
    reset: ResetLimits
  },
) {
  const { config, log, metrics, health, stats, cleanups } = context
  const { source, decide, explain, reset } = given
  const onDefect = (err: unknown) => {
    stats.service.serviceError++
    log.error({ err }, 'rate-limit call failed')
  }
  const isHealthy = () =>
    hasRequiredRules(config, source.state().domains) &&
    (!config.REDIS_HEALTH_CHECK_ACTIVE_CONNECTION || health.read().dependencies['redis'] === 'up')
  for (const resource of boundKinds) metrics.limiterSheds.inc({ resource }, 0)
  const grpc = await serveGrpc({
    config,
    decide,
    onCall: ({ seconds, code }) => {
      stats.countCall(seconds * 1000)
      if (code === 'INVALID_ARGUMENT') stats.service.serviceError++
      metrics.limiterCallSeconds.labels('ShouldRateLimit', code).observe(seconds)
    },
    onDefect,
    onError: (err) => {
      log.error({ err }, 'gRPC server error')
    },
    onShed: (resource) => {
      metrics.limiterSheds.inc({ resource })
    },
  })
  cleanups.push(() => grpc.close())
  const ports = await openRateLimitListeners({
    ...{ config, decide, explain },
    adminApi: limiterAdminRoutes(reset, config.BASE_URL),
    isHealthy,
    onDefect,
    renderRules: () => renderRules(source.rules(), source.state().faults),
    renderStats: () => renderStats(stats),
    renderTop: () => `${JSON.stringify(stats.top.read(Date.now()))}\n`,
    health,
    metrics,
    log,
    baseUrl: config.BASE_URL,
    onStop: (drain) => cleanups.push(drain),
  })
  return {
    ports: { grpcPort: grpc.port, ...ports },
    updateServing: () => {
      grpc.setServing(isHealthy())
    },
  }
}
