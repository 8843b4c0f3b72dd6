// `curtail migrate`: brings Cassandra to the schema that this version needs, or waits until it has
// it. A Job and an init container: waits while nothing answers, and may run many times at once.
import type { ConfigOf } from '../config/config.ts'
import { pause, within } from '../resilience/deadline.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { type Cassandra, openCassandra } from '../stores/cassandra/client.ts'
import { observeSettings } from '../stores/cassandra/cluster-settings.ts'
import type { ConnectFault } from '../stores/cassandra/connect-fault.ts'
import { refusalOf } from '../stores/cassandra/failed-outcome.ts'
import { hasKeyspace, migrate, readSchemaVersion } from '../stores/cassandra/migrations.ts'
import { createKeyspace, schemaVersion } from '../stores/cassandra/schema.ts'
import {
  cassandraSettings,
  cassandraTied,
  replicationSetting,
} from '../stores/cassandra/settings.ts'

const settings = {
  ...cassandraSettings,
  CASSANDRA_REPLICATION: replicationSetting,
  LOG_LEVEL: logLevelSetting,
} as const

/** `migrate`. */
export const role = defineRole({
  usage: 'migrate [--wait]',
  about:
    'Makes or renews the tables in Cassandra, and the keyspace if CASSANDRA_REPLICATION is set;\n' +
    'says what of the cluster’s settings differs from what we rest on, and what that costs.\n' +
    '--wait changes nothing: it ends once the tables are as new as this version needs.',
  settings,
  tied: cassandraTied,
  run: async ({ config, args, signal }) => {
    const unknown = args.find((arg) => arg !== '--wait')
    if (unknown !== undefined) throw new UsageError(`migrate takes --wait alone, not ${unknown}`)
    const log = createLog({ role: 'migrate', level: config.LOG_LEVEL })
    const isWaiting = args.includes('--wait')
    const stop = new AbortController()
    const ending = AbortSignal.any([stop.signal, signal])
    let refused: ConnectFault | undefined
    const cassandra = openCassandra({
      config,
      inKeyspace: false,
      metrics: createMetrics(),
      log,
      signal: ending,
      onFault: (fault) => {
        // Waiting does not mend settings; who only waits may see them mended by others.
        if (isWaiting || fault.kind === 'away') return
        refused = fault
        stop.abort()
      },
    })
    try {
      const state = await cassandra.ready
      if (refused !== undefined) throw new OperatorError(refused.sentence)
      if (state === 'closed') return ended(log)
      const run = { config, cassandra, log, signal }
      return await (isWaiting ? waitForSchema(run) : migrateUntilDone(run))
    } finally {
      await cassandra.close()
    }
  },
})

interface Run {
  readonly config: ConfigOf<typeof settings>
  readonly cassandra: Cassandra
  readonly log: Log
  readonly signal: AbortSignal
}

type Ended = { readonly exitCode: number }

const PAUSE = { firstMs: 250, mostMs: 5000 }
const SETTINGS_MS_MAX = 10_000

function ended(log: Log): Ended {
  log.info('stopped before it was done')
  return { exitCode: 1 }
}

/** Repeats `attempt` while the store fails, or it gives nothing, until `signal` aborts. */
async function untilDone(
  { log, signal }: Run,
  attempt: () => Promise<Ended | undefined>,
): Promise<Ended> {
  let pauseMs = PAUSE.firstMs
  while (!signal.aborted) {
    try {
      const done = await attempt()
      if (done !== undefined) return done
    } catch (err) {
      if (!(err instanceof StoreError)) throw err
      const refusal = refusalOf(err.cause)
      if (refusal !== undefined) throw new OperatorError(`Cassandra refuses: ${refusal}`)
      log.warn({ err }, 'Cassandra did not answer: trying again')
    }
    await pause(pauseMs * (0.5 + Math.random() / 2), signal)
    pauseMs = Math.min(pauseMs * 2, PAUSE.mostMs)
  }
  return ended(log)
}

function waitForSchema(run: Run): Promise<Ended> {
  const { config, cassandra, log } = run
  const keyspace = config.CASSANDRA_KEYSPACE
  let told = -1
  return untilDone(run, async () => {
    const version = await readSchemaVersion(cassandra, keyspace)
    if (version >= schemaVersion) {
      log.info({ keyspace, version, needed: schemaVersion }, 'the schema is there')
      return { exitCode: 0 }
    }
    const isNews = version !== told
    told = version
    if (isNews) log.info({ keyspace, version, needed: schemaVersion }, 'waiting for the schema')
    return undefined
  })
}

function migrateUntilDone(run: Run): Promise<Ended> {
  const { config, cassandra, log, signal } = run
  const keyspace = config.CASSANDRA_KEYSPACE
  return untilDone(run, async () => {
    await ensureKeyspace(run)
    const { version, applied } = await migrate(cassandra, {
      keyspace,
      signal,
      onStep: (step) => {
        log.info({ keyspace, version: step.version, about: step.about }, 'migrating')
      },
      onWait: () => {
        log.info({ keyspace }, 'another is migrating: waiting for it')
      },
    })
    await tellSettings(run)
    log.info({ keyspace, version, needed: schemaVersion, applied }, 'migrated')
    return { exitCode: 0 }
  })
}

/** Makes the keyspace where it may. Throws OperatorError with the statement where it may not. */
async function ensureKeyspace({ config, cassandra, log }: Run): Promise<void> {
  const { CASSANDRA_KEYSPACE: keyspace, CASSANDRA_REPLICATION: replication } = config
  if (await hasKeyspace(cassandra, keyspace)) return
  if (replication === undefined) {
    const dc = config.CASSANDRA_LOCAL_DC
    const statement = createKeyspace(keyspace, [{ dc, replicas: 3 }])
    throw new OperatorError(
      `there is no keyspace ${keyspace}: set CASSANDRA_REPLICATION, such as ${dc}:3, or run: ` +
        `${statement};`,
    )
  }
  log.info({ keyspace, replication }, 'making the keyspace')
  await cassandra.changeSchema(createKeyspace(keyspace, replication))
}

/** Says what of the cluster differs from what we rest on; a cluster that does not tell is well. */
async function tellSettings({ cassandra, log }: Run): Promise<void> {
  const late = () => new StoreError('no settings in time', { outcome: 'not-done' })
  const findings = await within(SETTINGS_MS_MAX, observeSettings(cassandra), late).catch(
    (error: unknown) => {
      if (error instanceof StoreError) return 'unreadable' as const
      throw error
    },
  )
  if (findings === 'unreadable') {
    log.warn('the settings of the cluster cannot be read: check them by the manual')
    return
  }
  for (const { setting, values, wanted, costs } of findings)
    log.warn({ setting, values, wanted, costs }, `${setting} should be ${wanted}: ${costs}`)
}
