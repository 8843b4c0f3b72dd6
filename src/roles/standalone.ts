// Everything on one machine: the apps of create and redirect over one SQLite database.
import { randomBytes } from 'node:crypto'
import { createClientLimits } from '../limiter/decide/client-limits.ts'
import { rateLimitsSetting, readClientRules } from '../limiter/rules/client-rules.ts'
import { createPermutation, SECRET_BYTES } from '../codes/permutation.ts'
import { fingerprintOf, type PoolMarks } from '../codes/pool.ts'
import { createLinkFinder, type LinkFinder } from '../resolve/find-link.ts'
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp, servedPaths } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { createPostLinkLane } from '../http/create/post-link.ts'
import { createRedirectLane } from '../http/redirect/get-code.ts'
import { createRequestLimits, noLimits, type RequestLimits } from '../http/limit-requests.ts'
import { openService, type Service } from '../http/open-service.ts'
import type { Lane } from '../http/serve.ts'
import * as http from '../http/settings.ts'
import type { RuleSet } from '../limits/rule.ts'
import { type Background, runInBackground } from '../resilience/background.ts'
import { monotonicMs, steadyNowUs } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ConfigOf } from '../config/config.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { logLevelSetting, textSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createCodeSupply } from '../create/code-supply.ts'
import { createCreator } from '../create/create-link.ts'
import { refillPool } from '../pools/refill-pool.ts'
import { createLinkOperations } from '../admin/set-link-state.ts'
import { sweep } from '../admin/sweep.ts'
import { watchPools } from '../pools/watch-pools.ts'
import { createMemoryCounterStore } from '../stores/memory/counter-store.ts'
import { createSqliteCodeStore, keepSecret } from '../stores/sqlite/code-store.ts'
import { type Database, openDatabase, unusable } from '../stores/sqlite/database.ts'
import { createSqliteIntentStore } from '../stores/sqlite/intent-store.ts'
import { createSqliteLinkStore } from '../stores/sqlite/link-store.ts'
import { createStoreWatch } from '../stores/sqlite/store-watch.ts'

const settings = {
  BASE_URL: http.baseUrlSetting,
  OWN_HOSTS: http.ownHostsSetting,
  PORT: http.publicPortSetting,
  ADMIN_PORT: http.adminPortSetting,
  ADMIN_TOKEN: http.adminTokenSetting,
  DATA_DIR: textSetting('folder of the database', './data'),
  RATE_LIMITS: rateLimitsSetting,
  REDIRECT_STATUS: http.redirectStatusSetting,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

const POOL = 'default'
const marks: PoolMarks = { lowWater: 20_000, target: 40_000 }
const REFILL_CHECK_MS = 5000
const SWEEP_EVERY_MS = 24 * 3_600_000
/** How long "there is no such link" is remembered; this process forgets it when it creates one. */
const MISS_MS = 60_000

/** `standalone`: the newcomer's first minute, and the unit of most tests. */
export const role = defineRole({
  usage: 'standalone [--greet]',
  about:
    'The whole service in one process, on an SQLite database in DATA_DIR.\n' +
    '--greet prints where it listens and two commands to try.',
  settings,
  run: async ({ config, args }) => {
    const unknown = args.find((arg) => arg !== '--greet')
    if (unknown !== undefined)
      throw new UsageError(`standalone takes --greet alone, not ${unknown}`)
    const service = await startService(config)
    if (args.includes('--greet')) process.stdout.write(greeting(service))
    return { stop: service.stop }
  },
})

async function startService(config: Config) {
  const rules = readClientRules(config.RATE_LIMITS)
  const service = await openService({
    role: 'standalone',
    config,
    adminHost: '127.0.0.1',
    dependencies: ['store'],
  })
  const { publicHttp, metrics, health } = service
  try {
    const parts = await openParts(config, service)
    service.onEnd(parts.close)
    const baseUrl = config.BASE_URL ?? `http://localhost:${publicHttp.port}`
    const limits = limitsOf(rules, metrics)
    for (const task of attach({ config, parts, baseUrl, limits, service })) {
      service.onEnd(() => task.stop())
    }
    health.note('store', 'up')
    service.ready({ baseUrl, dataDir: config.DATA_DIR })
    return { baseUrl, port: publicHttp.port, stop: service.stop }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** The limits of clients, as RATE_LIMITS says. */
function limitsOf(rules: RuleSet | 'off', metrics: Metrics): RequestLimits {
  if (rules === 'off') return noLimits
  const store = createMemoryCounterStore({ nowUs: steadyNowUs })
  const limits = createClientLimits({ rules, store })
  return createRequestLimits({ limits, nowMs: Date.now, metrics })
}

type Parts = Awaited<ReturnType<typeof openParts>>

/** The database and what works on it, with enough codes minted for the first request. */
async function openParts(config: Config, { log, health, metrics }: Service) {
  const onEnded = (err: Error) => {
    log.fatal({ err }, 'nothing can be stored any more: ending, to be started again')
    process.exit(1)
  }
  const watch = createStoreWatch({ health, log, onEnded })
  const ending = new AbortController()
  const db = await openDatabase(config.DATA_DIR, metrics, watch)
  try {
    const { codes, pools, refill } = await openPool({ db, metrics, signal: ending.signal })
    return {
      links: createSqliteLinkStore(db),
      intents: createSqliteIntentStore(db, Date.now),
      codes,
      pools,
      /** Keeps the pool filled, and sees a store that failed come back where nobody else asks. */
      tend: async () => {
        if (watch.isDown()) await db.probe()
        await refill()
      },
      signal: ending.signal,
      close: async () => {
        ending.abort()
        await db.close()
      },
    }
  } catch (error) {
    await db.close()
    throw error instanceof StoreError ? unusable(config.DATA_DIR, error) : error
  }
}

/** The pool of codes, filled. Throws StoreError. */
async function openPool(given: { db: Database; metrics: Metrics; signal: AbortSignal }) {
  const { db, metrics, signal } = given
  const codes = createSqliteCodeStore(db)
  const secret = await keepSecret(db, 'code', randomBytes(SECRET_BYTES))
  const secretFingerprint = fingerprintOf(secret)
  await codes.insertPoolIfAbsent({ pool: POOL, secretFingerprint })
  const permutation = createPermutation(secret)
  const pools = watchPools({
    readPools: async () => [await codes.readPoolSerial(POOL)].filter((row) => row !== undefined),
    marksOf: () => marks,
    metrics,
    nowMs: Date.now,
  })
  const refilling = { codes, pool: POOL, permutation, secretFingerprint, metrics, signal }
  const refill = async () => {
    pools.see([await refillPool(refilling, marks)])
  }
  await refill()
  return { codes, pools, refill }
}

/** Puts the apps on their listeners and starts what runs beside them. */
function attach(given: {
  config: Config
  parts: Parts
  baseUrl: string
  limits: RequestLimits
  service: Service
}): Background[] {
  const { config, parts, baseUrl, limits, service } = given
  const { log, metrics, publicHttp, adminHttp } = service
  const { links } = parts
  const nowMs = Date.now
  const onError = (task: string) => (error: unknown) => {
    metrics.backgroundFailures.inc({ task })
    log.error({ err: error, task }, 'a background task failed')
  }
  const refilling = runInBackground({
    everyMs: REFILL_CHECK_MS,
    task: parts.tend,
    onError: onError('refill'),
  })
  const sweeping = runInBackground({
    everyMs: SWEEP_EVERY_MS,
    task: (signal) => sweep({ links, intents: parts.intents, nowMs, metrics, log, signal }),
    onError: onError('sweep'),
  })
  const finder = createLinkFinder({ links, nowMs, metrics, missMs: MISS_MS })
  const onStored = (code: string) => {
    finder.forget(code)
    return undefined // nobody else remembers it, so there is nothing to wait for
  }
  const supply = createCodeSupply({
    codes: parts.codes,
    pool: POOL,
    signal: parts.signal,
    monotonicMs,
    metrics,
    onPoolAsked: () => {
      refilling.nudge()
    },
    onError: onError('claim-block'),
  })
  const { intents } = parts
  const createDeps = { links, intents, supply, nowMs, monotonicMs, metrics, onStored }
  const creating = {
    baseUrl,
    schema: createBodySchema(http.ownHostsOf(baseUrl, config.OWN_HOSTS)),
    limits,
    create: createCreator({ ...createDeps, onLateError: onError('create-link') }),
    metrics,
    log,
  }
  const app = createCreateApp(creating)
  const postLinkLane = createPostLinkLane(creating)
  const redirectStatus = config.REDIRECT_STATUS
  const redirectLane = createRedirectLane({
    finder,
    limits,
    nowMs,
    metrics,
    log,
    baseUrl,
    redirectStatus,
    servedPaths,
  })
  const lane: Lane = (req, res) => redirectLane(req, res) || postLinkLane(req, res)
  publicHttp.attach({ baseUrl, app, lane })
  adminHttp.attach({ baseUrl, app: adminAppOf({ config, parts, baseUrl, finder, service }) })
  return [refilling, sweeping]
}

function adminAppOf(given: {
  config: Config
  parts: Parts
  baseUrl: string
  finder: LinkFinder
  service: Service
}) {
  const { config, parts, baseUrl, finder, service } = given
  const { health, metrics, log } = service
  const { links, pools } = parts
  const nowMs = Date.now
  const onChanged = (code: string) => {
    finder.forget(code)
    return true // nobody else remembers it
  }
  const operations = createLinkOperations({ links, nowMs, onChanged })
  const api = { operations, readPools: pools.report, nowMs }
  return createAdminApp({ health, metrics, log, baseUrl, token: config.ADMIN_TOKEN, api })
}

/** Where it listens, which BASE_URL need not lead to, and two commands that work there. */
function greeting({ baseUrl, port }: { baseUrl: string; port: number }): string {
  const here = new URL(`http://localhost:${port}`).origin
  const alias = `try-${randomBytes(3).toString('hex')}`
  const body = JSON.stringify({ long_url: 'https://example.com/', custom_alias: alias })
  return [
    `Curtail listens on ${here}. To try it, make a link and follow it:`,
    '',
    `  curl -X POST ${here}/v1/urls -H 'Content-Type: application/json' -d '${body}'`,
    `  curl -i ${here}/${alias}`,
    '',
    ...(new URL(baseUrl).origin === here ? [] : [`Short links begin with ${baseUrl}.`, '']),
    'Ctrl-C stops it.',
    '',
  ].join('\n')
}
