// `curtail migrate`: upgrades Cassandra to the schema of this release. With --wait, as an init
// container, it waits for that schema. Retries while Cassandra is unavailable; concurrent runs are
// safe.
import type { ConfigOf } from '../config/config.ts'
import { within } from '../resilience/deadline.ts'
import { fromHalf, resultOrFailed, retryUntilStopped } from '../resilience/retry-until-deadline.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defineRole, OperatorError } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { SLOW_START_MS_MAX } from '../resilience/start-period.ts'
import { StoreError } from '../resilience/store-error.ts'
import { type Cassandra, openCassandra } from '../stores/cassandra/client.ts'
import { readSettingProblems } from '../stores/cassandra/cluster-settings.ts'
import type { ConnectFault } from '../stores/cassandra/connect-fault.ts'
import { rejectionOf } from '../stores/cassandra/failed-outcome.ts'
import { hasKeyspace, migrate, readSchemaVersion } from '../stores/cassandra/migrations.ts'
import { createKeyspace, schemaVersion } from '../stores/cassandra/schema.ts'
import {
  cassandraSettings,
  cassandraDependentSettings,
  replicationSetting,
} from '../stores/cassandra/settings.ts'

const settings = {
  ...cassandraSettings,
  CASSANDRA_REPLICATION: replicationSetting,
  LOG_LEVEL: logLevelSetting,
} as const

/** `migrate`. */
export const role = defineRole({
  name: 'migrate',
  about:
    'Creates or upgrades the tables in Cassandra. Also creates the keyspace if\n' +
    'CASSANDRA_REPLICATION is set. Reports each setting of the cluster that differs from the\n' +
    'required value, and the consequence.',
  commands: {
    '': {
      about: '',
      flags: {
        wait: {
          about: 'changes nothing; exits when the tables have the version that this release needs',
        },
      },
    },
  },
  settings,
  dependent: cassandraDependentSettings,
  run: async ({ config, args, signal }) => {
    const log = createLog({ role: 'migrate', level: config.LOG_LEVEL })
    const isWaiting = args.flags.wait
    const connecting = new AbortController()
    const stopping = AbortSignal.any([connecting.signal, signal])
    let connectFault: ConnectFault | undefined
    const cassandra = openCassandra({
      config,
      inKeyspace: false,
      metrics: createMetrics(),
      log,
      signal: stopping,
      // With and without --wait: Cassandra may have been installed at the same time.
      startMsMax: SLOW_START_MS_MAX,
      onFault: (fault) => {
        // A retry does not fix wrong settings; with --wait an operator may fix them meanwhile.
        if (isWaiting || fault.kind === 'unreachable') return
        connectFault = fault
        connecting.abort()
      },
    })
    try {
      const state = await cassandra.ready
      if (connectFault !== undefined) throw new OperatorError(connectFault.sentence)
      if (state === 'closed') return logStopped(log)
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

type ExitResult = { readonly exitCode: number }

/** The first and the longest pause between two attempts. */
const PAUSES = { firstMs: 250, maxMs: 5000 }
/**
 * A rejection by a node that has not received a schema change yet: the keyspace or the table exists
 * on another node.
 */
const NOT_RECEIVED =
  /^(?:keyspace \S+ (?:doesn't|does not) exist|table \S+ does not exist|unconfigured table \S+)$/i
/** Maximum time to read the settings of the cluster. */
const SETTINGS_MS_MAX = 10_000

function logStopped(log: Log): ExitResult {
  log.info('stopped before completion')
  return { exitCode: 1 }
}

/**
 * Retries `attempt` until it returns a result or `signal` aborts. Throws OperatorError if Cassandra
 * rejects a statement.
 */
async function retryUntilDone(
  { log, signal }: Run,
  attempt: () => Promise<ExitResult | 'failed'>,
): Promise<ExitResult> {
  const onFailure = (err: StoreError) => {
    const rejection = rejectionOf(err.cause)
    if (rejection !== undefined && !NOT_RECEIVED.test(rejection))
      throw new OperatorError(`Cassandra rejects the migration: ${rejection}`)
    log.warn({ err }, 'call of Cassandra failed: retrying')
  }
  const retries = { signal, pauses: PAUSES, random: fromHalf, onFailure }
  const result = await retryUntilStopped(retries, attempt)
  return result === 'stopped' ? logStopped(log) : result
}

function waitForSchema(run: Run): Promise<ExitResult> {
  const { config, cassandra, log } = run
  const keyspace = config.CASSANDRA_KEYSPACE
  let loggedVersion = -1
  return retryUntilDone(run, async () => {
    const version = await readSchemaVersion(cassandra, keyspace)
    if (version >= schemaVersion) {
      log.info({ keyspace, version, needed: schemaVersion }, 'schema present')
      return { exitCode: 0 }
    }
    if (version !== loggedVersion)
      log.info({ keyspace, version, needed: schemaVersion }, 'waiting for the schema')
    loggedVersion = version
    return 'failed'
  })
}

function migrateUntilDone(run: Run): Promise<ExitResult> {
  const { config, cassandra, log, signal } = run
  const keyspace = config.CASSANDRA_KEYSPACE
  return retryUntilDone(run, async () => {
    await ensureKeyspace(run)
    const { version, applied } = await migrate(cassandra, {
      keyspace,
      signal,
      onStep: (step) => {
        log.info({ keyspace, version: step.version, about: step.about }, 'migrating')
      },
      onWait: () => {
        log.info({ keyspace }, 'another process is migrating: waiting')
      },
    })
    await reportSettings(run)
    log.info({ keyspace, version, needed: schemaVersion, applied }, 'migrated')
    return { exitCode: 0 }
  })
}

/**
 * Creates a missing keyspace with CASSANDRA_REPLICATION; without it, throws OperatorError with the
 * statement to run.
 */
async function ensureKeyspace({ config, cassandra, log }: Run): Promise<void> {
  const { CASSANDRA_KEYSPACE: keyspace, CASSANDRA_REPLICATION: replication } = config
  if (await hasKeyspace(cassandra, keyspace)) return
  if (replication === undefined) {
    const dc = config.CASSANDRA_LOCAL_DC
    const statement = createKeyspace(keyspace, [{ dc, replicas: 3 }])
    throw new OperatorError(
      `unknown keyspace ${keyspace}: set CASSANDRA_REPLICATION, such as ${dc}:3, or run: ` +
        `${statement};`,
    )
  }
  log.info({ keyspace, replication }, 'creating the keyspace')
  await cassandra.changeSchema(createKeyspace(keyspace, replication))
}

/** Logs cluster settings that differ from the required ones, or logs that none can be read. */
async function reportSettings({ cassandra, log }: Run): Promise<void> {
  const onTimeout = () => new StoreError('no settings within the deadline', { outcome: 'not-done' })
  const read = within(SETTINGS_MS_MAX, readSettingProblems(cassandra), onTimeout)
  const problems = await resultOrFailed(read)
  if (problems === 'failed' || problems === 'unreadable') {
    log.warn('cannot read the settings of the cluster: check them manually')
    return
  }
  for (const { setting, values, wanted, costs } of problems)
    log.warn({ setting, values, wanted, costs }, `${setting} should be ${wanted}: ${costs}`)
}
