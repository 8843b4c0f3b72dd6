// Fills a pool with codes up to its target, then exits. Runs as a Job. Only this role has the code
// secret, the key of the permutation that generates codes. It may be killed at any time; concurrent
// runs are safe.
import type { CodeStore } from '../codes/code-store.ts'
import { createPermutation } from '../codes/permutation.ts'
import { fingerprintOf, levelOf, type Pool } from '../codes/pool.ts'
import type { ConfigOf } from '../config/config.ts'
import { pause } from '../resilience/deadline.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defineRole, OperatorError } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { OtherSecretError, type RefillDeps, refillPool } from '../pools/refill-pool.ts'
import { codeSecretSetting, poolTargetSetting } from '../pools/settings.ts'
import { codePoolSetting } from '../create/settings.ts'
import { type Cassandra, openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore, storeTargetLevel } from '../stores/cassandra/code-store.ts'
import { cassandraSettings, cassandraDependentSettings } from '../stores/cassandra/settings.ts'

const settings = {
  ...cassandraSettings,
  CODE_POOL: codePoolSetting,
  CODE_SECRET_FILE: codeSecretSetting,
  POOL_TARGET: poolTargetSetting,
  LOG_LEVEL: logLevelSetting,
} as const

type Config = ConfigOf<typeof settings>

/** `refill`. */
export const role = defineRole({
  name: 'refill',
  about:
    'Generates codes until the pool CODE_POOL contains POOL_TARGET codes, and exits. Logs its\n' +
    'progress; the last line has the number of codes. Waits until Cassandra is available. Then\n' +
    'exits with 1 if it fails repeatedly, and with 3 if the pool was created with a different\n' +
    'code secret.',
  settings,
  dependent: cassandraDependentSettings,
  run: async ({ config, signal }) => {
    const log = createLog({ role: 'refill', level: config.LOG_LEVEL })
    const metrics = createMetrics()
    const cassandra = openCassandra({ config, metrics, log, signal })
    try {
      const codes = createCassandraCodeStore(cassandra)
      await cassandra.ready // without a timeout: `signal` aborts it
      return { exitCode: await refill({ config, log, metrics, cassandra, codes, signal }) }
    } finally {
      await cassandra.close()
    }
  },
})

interface RefillInput extends Pick<RefillDeps, 'metrics' | 'signal'> {
  readonly config: Config
  readonly log: Log
  readonly cassandra: Cassandra
  readonly codes: CodeStore
}

/** After more consecutive failures the role exits, so that a new pod or Job can retry. */
const FAILURES_MAX = 10
/** A separate exit code: a retry of the Job does not fix a wrong secret. */
const EXIT_OTHER_SECRET = 3
/** Base and bound of the pauses, which double with each consecutive failure. */
const PAUSE_MS = 100
const PAUSE_MS_MAX = 5000

/** Fills the pool; resolves to the exit code. Throws OperatorError. */
async function refill(given: RefillInput): Promise<number> {
  const { config, log, metrics, cassandra, codes, signal } = given
  const { CODE_POOL: pool, CODE_SECRET_FILE: secret, POOL_TARGET: target } = config
  const startedMs = performance.now()
  const secretFingerprint = fingerprintOf(secret)
  let failures = 0
  let initial: Pool | undefined
  const deps: RefillDeps = {
    codes,
    pool,
    permutation: createPermutation(secret),
    secretFingerprint,
    metrics,
    signal,
    onMinted: (row) => {
      failures = 0
      log.info({ ...logFieldsOf(row), target }, 'minted')
    },
  }
  const isStopping = () => signal.aborted
  while (!isStopping()) {
    try {
      initial ??= await codes.insertPoolIfAbsent({ pool, secretFingerprint })
      const row = await refillPool(deps, { lowWater: target, target })
      await storeTargetLevel(cassandra, { pool, target })
      const mintedBlocks = row.minted - initial.minted
      const seconds = Math.round(performance.now() - startedMs) / 1000
      const isDone = !isStopping() // even if claims have reduced the level in the meantime
      const logFields = { ...logFieldsOf(row), target, mintedBlocks, seconds }
      log.info(logFields, isDone ? 'filled' : 'stopped')
      return isDone ? 0 : 1
    } catch (error) {
      if (error instanceof OtherSecretError) {
        process.stderr.write(`curtail: ${error.message}\n`)
        return EXIT_OTHER_SECRET
      }
      if (!(error instanceof StoreError)) throw error
      if (++failures > FAILURES_MAX) {
        throw new OperatorError(`the store failed ${failures} times in a row: ${error.message}`)
      }
      log.warn({ err: error, failures }, 'store call failed: retrying')
      await pause(Math.min(PAUSE_MS * 2 ** failures, PAUSE_MS_MAX), signal)
    }
  }
  log.info({ pool, target }, 'stopped')
  return 1
}

/** The log fields of a pool. */
function logFieldsOf(row: Pool) {
  const { pool, minted, claimed } = row
  return { pool, poolLevel: levelOf(row), minted, claimed }
}
