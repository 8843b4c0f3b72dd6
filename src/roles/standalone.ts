// Everything on one machine: the apps of create and redirect over one SQLite database.
import { randomBytes } from 'node:crypto'
import { createClientLimits } from '../charge/client-limits.ts'
import { rateLimitsSetting, readClientRules } from '../charge/client-rules.ts'
import { createPermutation, SECRET_BYTES } from '../codes/permutation.ts'
import { fingerprintOf, type PoolMarks } from '../codes/pool.ts'
import { createLinkFinder } from '../follow/find-link.ts'
import { createAdminApp } from '../http/admin/app.ts'
import { createCreateApp, servedPaths } from '../http/create/app.ts'
import { createBodySchema } from '../http/create/create-request.ts'
import { createPostLinkLane } from '../http/create/post-link.ts'
import { createRedirectLane } from '../http/redirect/get-code.ts'
import { createRequestLimits, noLimits, type RequestLimits } from '../http/limit-requests.ts'
import { type Lane, type Listener, listen } from '../http/serve.ts'
import * as http from '../http/settings.ts'
import type { RuleSet } from '../limits/rule.ts'
import { type Background, runInBackground } from '../process/background.ts'
import { steadyNowUs } from '../process/deadline.ts'
import { createHealth } from '../process/health.ts'
import { createLog } from '../process/log.ts'
import { collectProcessMetrics, createMetrics, type Metrics } from '../process/metrics.ts'
import type { ConfigOf } from '../process/config.ts'
import { defineRole, UsageError } from '../process/role.ts'
import { logLevelSetting, textSetting } from '../process/settings.ts'
import { StoreError } from '../process/store-error.ts'
import { version } from '../process/version.ts'
import { createCodeSupply } from '../shorten/code-supply.ts'
import { createLink, type CreateRequest } from '../shorten/create-link.ts'
import { refillPool } from '../shorten/refill-pool.ts'
import { createLinkOperations } from '../shorten/set-link-state.ts'
import { sweep } from '../shorten/sweep.ts'
import { watchPool } from '../shorten/watch-pool.ts'
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
  const parts = await openParts(config)
  const { log, health, metrics } = parts
  const closing: (() => Promise<void>)[] = [parts.close]
  try {
    const onError = (err: unknown) => {
      log.error({ err }, 'a connection was not accepted')
    }
    const publicHttp = await listen({ port: config.PORT, setting: 'PORT', onError })
    closing.unshift(() => publicHttp.drain())
    const adminPort = {
      port: config.ADMIN_PORT,
      host: '127.0.0.1',
      setting: 'ADMIN_PORT',
      onError,
      drainMsMax: 3000,
    }
    const adminHttp = await listen(adminPort)
    closing.splice(1, 0, () => adminHttp.drain())
    const baseUrl = config.BASE_URL ?? `http://localhost:${publicHttp.port}`
    const background = attach({
      config,
      parts,
      baseUrl,
      limits: limitsOf(rules, metrics),
      publicHttp,
      adminHttp,
    })
    closing.splice(2, 0, ...background.map((task) => () => task.stop()))
    health.note('store', 'up')
    health.markReady()
    const ports = { port: publicHttp.port, adminPort: adminHttp.port }
    log.info({ ...ports, baseUrl, dataDir: config.DATA_DIR }, 'ready')
    metrics.buildInfo.set({ version, node: process.version, role: 'standalone' }, 1)
    const stop = async () => {
      health.markDraining()
      log.info('draining')
      for (const close of closing) await close()
      log.info('stopped')
    }
    return { baseUrl, port: publicHttp.port, stop }
  } catch (error) {
    for (const close of closing) await close()
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
async function openParts(config: Config) {
  const log = createLog({ role: 'standalone', level: config.LOG_LEVEL })
  const metrics = createMetrics()
  collectProcessMetrics(metrics)
  const health = createHealth(['store'])
  const onEnded = (err: Error) => {
    log.fatal({ err }, 'nothing can be stored any more: ending, to be started again')
    process.exit(1)
  }
  const watch = createStoreWatch({ health, log, onEnded })
  const ending = new AbortController()
  const db = await openDatabase(config.DATA_DIR, metrics, watch)
  try {
    const { codes, pool } = await openPool({ db, metrics, signal: ending.signal })
    return {
      log,
      metrics,
      health,
      links: createSqliteLinkStore(db),
      intents: createSqliteIntentStore(db, Date.now),
      codes,
      pool,
      /** Keeps the pool filled, and sees a store that failed come back where nobody else asks. */
      tend: async () => {
        if (watch.isDown()) await db.probe()
        await pool.refill()
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
  const pool = watchPool({
    pool: POOL,
    marks,
    metrics,
    nowMs: Date.now,
    readPool: () => codes.readPoolSerial(POOL),
    refill: () =>
      refillPool({ codes, pool: POOL, permutation, secretFingerprint, metrics, signal }, marks),
  })
  await pool.refill()
  return { codes, pool }
}

/** Puts the apps on their listeners and starts what runs beside them. */
function attach(given: {
  config: Config
  parts: Parts
  baseUrl: string
  limits: RequestLimits
  publicHttp: Listener
  adminHttp: Listener
}): Background[] {
  const { config, parts, baseUrl, limits, publicHttp, adminHttp } = given
  const { log, metrics, links } = parts
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
  }
  const supply = createCodeSupply({
    codes: parts.codes,
    pool: POOL,
    signal: parts.signal,
    nowMs,
    metrics,
    onPoolAsked: () => {
      refilling.nudge()
    },
    onError: onError('claim-block'),
  })
  const createDeps = { links, intents: parts.intents, supply, nowMs, metrics, onStored }
  const creating = {
    baseUrl,
    schema: createBodySchema(http.ownHostsOf(baseUrl, config.OWN_HOSTS)),
    limits,
    create: (request: CreateRequest) => createLink(createDeps, request),
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
  adminHttp.attach({ baseUrl, app: adminAppOf({ config, parts, baseUrl, onStored }) })
  return [refilling, sweeping]
}

function adminAppOf(given: {
  config: Config
  parts: Parts
  baseUrl: string
  onStored: (code: string) => void
}) {
  const { config, parts, baseUrl, onStored } = given
  const { health, metrics, log, links, pool } = parts
  const nowMs = Date.now
  const operations = createLinkOperations({ links, nowMs, onStored })
  const api = { operations, readPools: async () => [await pool.report()], nowMs }
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
