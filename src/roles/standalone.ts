// The whole service in one process: the create and redirect apps on one SQLite database.
import { randomBytes } from 'node:crypto'
import { createClientLimits } from '../limiter/decide/client-limits.ts'
import {
  rateLimitsFile,
  rateLimitsSetting,
  readClientRules,
} from '../limiter/rules/client-rules.ts'
import { BLOCK_SIZE } from '../codes/block.ts'
import { createPermutation, SECRET_BYTES } from '../codes/permutation.ts'
import { fingerprintOf, type PoolMarks } from '../codes/pool.ts'
import * as blockedTargets from '../resolve/blocked/open-blocked-targets.ts'
import { createLinkFinder, type LinkFinder } from '../resolve/find-link.ts'
import { blockedStatusSetting, blockedTargetsSetting } from '../resolve/settings.ts'
import { type AdminApiDeps, adminRoutes } from '../http/admin/api.ts'
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp, servedPaths } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { securityContactSetting } from '../http/create/security-txt.ts'
import { greetingOf } from '../http/greeting.ts'
import { createRedirectFastPath } from '../http/redirect/get-code.ts'
import { createRequestLimits, noLimits, type RequestLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import * as http from '../http/settings.ts'
import type { RuleSet } from '../limits/rule.ts'
import { faultFields } from '../limits/rule-fault.ts'
import { type Background, runInBackground } from '../resilience/background.ts'
import { monotonicMs, steadyNowUs } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ConfigOf } from '../config/config.ts'
import { defineRole } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createCodeSupply } from '../create/code-supply.ts'
import { apiKeysCheck, type ClientKeys, openClientKeys } from '../create/client-keys.ts'
import { createBoundedCreate } from '../create/create-link.ts'
import { apiKeyDependentSettings, apiKeySettings } from '../create/settings.ts'
import { refillPool } from '../pools/refill-pool.ts'
import { createLinkOperations } from '../admin/set-link-state.ts'
import { sweep } from '../admin/sweep.ts'
import { createBatchImporter } from '../transfer/import-batch.ts'
import { createPoolReporter } from '../pools/pool-reporter.ts'
import { createMemoryCounterStore } from '../stores/memory/counter-store.ts'
import { createSqliteCodeStore, insertSecretIfAbsent } from '../stores/sqlite/code-store.ts'
import { dataDirSetting, dataFolder } from '../stores/sqlite/data-folder.ts'
import { type Database, openDatabase, unusableFolder } from '../stores/sqlite/database.ts'
import { createSqliteIntentStore } from '../stores/sqlite/intent-store.ts'
import { createSqliteLinkStore } from '../stores/sqlite/link-store.ts'
import { createSqliteReportStore } from '../stores/sqlite/report-store.ts'
import { createStoreWatch } from '../stores/sqlite/store-watch.ts'

const settings = {
  BASE_URL: http.baseUrlSetting,
  OWN_HOSTS: http.ownHostsSetting,
  PORT: http.publicPortSetting,
  ADMIN_PORT: http.adminPortSetting,
  ADMIN_TOKEN: http.adminTokenSetting,
  DATA_DIR: dataDirSetting,
  RATE_LIMITS: rateLimitsSetting,
  ...apiKeySettings,
  REDIRECT_STATUS: http.redirectStatusSetting,
  BLOCKED_TARGETS: blockedTargetsSetting,
  BLOCKED_STATUS: blockedStatusSetting,
  SECURITY_CONTACT: securityContactSetting,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

const POOL = 'default'
const marks: PoolMarks = { lowWater: 5000, target: 10_000 }
/** Marks until the first claim: minting more at the start would cost 6 MB in V8's optimizer. */
const unusedMarks: PoolMarks = { lowWater: BLOCK_SIZE, target: BLOCK_SIZE }
const REFILL_CHECK_MS = 5000
const SWEEP_EVERY_MS = 24 * 3_600_000

/** `standalone`: to try the service, and for most tests. */
export const role = defineRole({
  name: 'standalone',
  about: 'Runs the whole service in one process, with an SQLite database in DATA_DIR.',
  commands: {
    '': {
      about: '',
      flags: { greet: { about: 'prints the address of the service and two example commands' } },
    },
  },
  settings,
  dependent: [http.distinctPorts, apiKeyDependentSettings],
  files: [dataFolder, rateLimitsFile, apiKeysCheck, blockedTargets.blockedTargetsFiles],
  run: async ({ config, args }) => {
    const service = await startService(config)
    if (args.flags.greet) process.stdout.write(greetingOf(service))
    return { stop: service.stop }
  },
})

async function startService(config: Config) {
  const { rules, warnings } = readClientRules(config.RATE_LIMITS)
  const service = await openService({
    role: 'standalone',
    config,
    adminHost: '127.0.0.1',
    dependencies: ['store'],
  })
  const { log, publicHttp, metrics, health } = service
  if (warnings.length > 0) log.warn(faultFields(warnings), 'rules loaded with warnings')
  try {
    const components = await openComponents(config, service)
    service.onStop(components.close)
    const baseUrl = config.BASE_URL ?? `http://localhost:${publicHttp.port}`
    const limits = limitsOf(rules, metrics)
    const [keys, blocked] = await Promise.all([
      openClientKeys(config, service, Date.now),
      blockedTargets.openBlockedTargets(config.BLOCKED_TARGETS, service),
    ])
    const given = { config, components, baseUrl, limits, keys, blocked, service }
    for (const task of attach(given)) {
      service.onStop(() => task.stop())
    }
    health.note('store', 'up')
    service.ready({ baseUrl, dataDir: config.DATA_DIR })
    const isKeyRequired = config.API_KEY_REQUIRED
    return { baseUrl, port: publicHttp.port, isKeyRequired, stop: service.stop }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** The client limits of RATE_LIMITS. */
function limitsOf(rules: RuleSet | 'off', metrics: Metrics): RequestLimits {
  if (rules === 'off') return noLimits
  const store = createMemoryCounterStore({ nowUs: steadyNowUs })
  const limits = createClientLimits({ rules, store })
  return createRequestLimits({ limits, nowMs: Date.now, metrics })
}

type Components = Awaited<ReturnType<typeof openComponents>>

/** Opens the database and its stores, and generates the codes for the first requests. */
async function openComponents(config: Config, { log, health, metrics, signal }: Service) {
  const onWriterStopped = (err: Error) => {
    log.fatal({ err }, 'the database cannot be written: exiting for a restart')
    process.exit(1)
  }
  const watch = createStoreWatch({ health, log, onWriterStopped })
  const db = await openDatabase(config.DATA_DIR, metrics, watch)
  try {
    const { codes, pools, refill } = await openPool({ db, metrics, signal })
    return {
      links: createSqliteLinkStore(db),
      intents: createSqliteIntentStore(db, Date.now),
      reports: createSqliteReportStore(db, Date.now),
      codes,
      pools,
      isStoreDown: () => watch.isDown(),
      /** Refills the pool, and probes an unavailable store, so that its recovery is detected. */
      maintain: async () => {
        if (watch.isDown()) await db.probe()
        await refill()
      },
      close: () => db.close(),
    }
  } catch (error) {
    await db.close()
    throw error instanceof StoreError ? unusableFolder(config.DATA_DIR, error) : error
  }
}

/** Opens and fills the code pool. Throws StoreError. */
async function openPool(given: { db: Database; metrics: Metrics; signal: AbortSignal }) {
  const { db, metrics, signal } = given
  const codes = createSqliteCodeStore(db)
  const secret = await insertSecretIfAbsent(db, 'code', randomBytes(SECRET_BYTES))
  const secretFingerprint = fingerprintOf(secret)
  const { claimed } = await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint })
  let isUsed = claimed > 0
  const marksOf = () => (isUsed ? marks : unusedMarks)
  const permutation = createPermutation(secret)
  const pools = createPoolReporter({
    readPools: async () => [await codes.readPoolSerial(POOL)].filter((row) => row !== undefined),
    marksOf,
    metrics,
    nowMs: Date.now,
  })
  const refillDeps = { codes, pool: POOL, permutation, secretFingerprint, metrics, signal }
  const refill = async () => {
    pools.record([await refillPool(refillDeps, marksOf())])
  }
  await refill()
  /** Called by claims: the first one fills the pool up, which takes milliseconds. */
  const readPoolSerial: typeof codes.readPoolSerial = async (name) => {
    if (!isUsed) {
      isUsed = true
      await refill()
    }
    return codes.readPoolSerial(name)
  }
  return { codes: { ...codes, readPoolSerial }, pools, refill }
}

/** What the apps are built from. */
interface AppDeps {
  readonly config: Config
  readonly components: Components
  readonly baseUrl: string
  readonly limits: RequestLimits
  readonly keys: ClientKeys
  readonly blocked: blockedTargets.BlockedChecks
  readonly service: Service
}

/** Attaches the apps to their listeners and starts the background tasks. */
function attach(given: AppDeps): Background[] {
  const { config, components, baseUrl, limits, keys, blocked, service } = given
  const { log, metrics, signal, publicHttp, adminHttp, onTaskError } = service
  const { links, intents, reports } = components
  const nowMs = Date.now
  const maintenance = runInBackground({
    everyMs: REFILL_CHECK_MS,
    task: components.maintain,
    onError: onTaskError('refill'),
  })
  const sweeps = runInBackground({
    everyMs: SWEEP_EVERY_MS,
    task: (signal) => sweep({ links, intents, reports, nowMs, metrics, log, signal }),
    onError: onTaskError('sweep'),
  })
  const hasUnknownWrites = components.isStoreDown
  const finder = createLinkFinder({ links, nowMs, metrics, isOnlyWriter: true, hasUnknownWrites })
  const invalidateCaches = (code: string) => {
    finder.invalidate(code)
    return undefined // no other cache to wait for
  }
  const supply = createCodeSupply({
    codes: components.codes,
    pool: POOL,
    signal,
    monotonicMs,
    metrics,
    triggerRefill: () => {
      maintenance.trigger()
    },
    onError: onTaskError('claim-block'),
  })
  const onErrorAfterResponse = onTaskError('create-link')
  const createDeps = { links, intents, supply, nowMs, monotonicMs, metrics, invalidateCaches }
  const ownHosts = http.ownHostsOf(baseUrl, config.OWN_HOSTS)
  const createAppDeps = {
    baseUrl,
    schema: createBodySchema(ownHosts),
    keys,
    limits,
    create: createBoundedCreate({ ...createDeps, onErrorAfterResponse }),
    isBlocked: blocked.linkCreationCheck(),
    ownHosts,
    reports,
    securityContacts: config.SECURITY_CONTACT,
    nowMs,
    metrics,
    log,
  }
  const app = createCreateApp(createAppDeps)
  const redirectStatus = config.REDIRECT_STATUS
  const fastPath = createRedirectFastPath({
    finder,
    limits,
    nowMs,
    metrics,
    log,
    baseUrl,
    redirectStatus,
    isBlocked: blocked.redirectCheck(),
    blockedStatus: config.BLOCKED_STATUS,
    servedPaths,
  })
  publicHttp.attach({ baseUrl, app, fastPath })
  const imports = { importBatch: createBatchImporter({ ...createDeps, ownHosts }) }
  const admin = adminAppOf({ ...given, finder, imports })
  adminHttp.attach({ baseUrl, app: admin })
  return [maintenance, sweeps]
}

function adminAppOf(given: AppDeps & { finder: LinkFinder; imports: AdminApiDeps['imports'] }) {
  const { config, components, baseUrl, finder, service, imports, blocked } = given
  const { health, metrics, log } = service
  const { links, reports, pools } = components
  const nowMs = Date.now
  const onChanged = (code: string) => {
    finder.invalidate(code)
    return true // no other cache to invalidate
  }
  const operations = createLinkOperations({ links, nowMs, onChanged })
  const stores = { links, reports, readPools: pools.report }
  const apiDeps = { operations, ...stores, imports, nowMs, log, lists: config, blocked }
  const api = { api: adminRoutes(apiDeps, baseUrl), changesLinks: true }
  return createAdminApp({ health, metrics, log, baseUrl, token: config.ADMIN_TOKEN, ...api })
}
