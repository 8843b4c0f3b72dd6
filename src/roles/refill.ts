// Mints codes into a pool until it holds its target, then ends: a Job, and alone in holding the
// code secret. May be killed at any moment and run twice at once.
import type { CodeStore } from '../codes/code-store.ts'
import { createPermutation } from '../codes/permutation.ts'
import { fingerprintOf, levelOf, type Pool } from '../codes/pool.ts'
import type { ConfigOf } from '../config/config.ts'
import { pause } from '../resilience/deadline.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defineRole, OperatorError, refuseArguments } from '../process/role.ts'
import { logLevelSetting } from '../config/settings.ts'
import { StoreError } from '../resilience/store-error.ts'
import { OtherSecretError, type RefillDeps, refillPool } from '../pools/refill-pool.ts'
import { codeSecretSetting, poolTargetSetting } from '../pools/settings.ts'
import { codePoolSetting } from '../create/settings.ts'
import { type Cassandra, openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore, keepTarget } from '../stores/cassandra/code-store.ts'
import { cassandraSettings, cassandraTied } from '../stores/cassandra/settings.ts'

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
  usage: 'refill',
  about:
    'Fills the pool CODE_POOL up to POOL_TARGET codes and ends. Prints its progress and, last,\n' +
    'a line with the level; ends with 1 where the store fails for long, with 3 where the secret\n' +
    'is another than the pool was begun with.',
  settings,
  tied: cassandraTied,
  run: async ({ config, args, signal }) => {
    refuseArguments('refill', args)
    const log = createLog({ role: 'refill', level: config.LOG_LEVEL })
    const metrics = createMetrics()
    const cassandra = openCassandra({ config, metrics, log, signal })
    try {
      const codes = createCassandraCodeStore(cassandra)
      await cassandra.ready // however long that takes: it ends with `signal`
      return { exitCode: await refill({ config, log, metrics, cassandra, codes, signal }) }
    } finally {
      await cassandra.close()
    }
  },
})

interface Refilling extends Pick<RefillDeps, 'metrics' | 'signal'> {
  readonly config: Config
  readonly log: Log
  readonly cassandra: Cassandra
  readonly codes: CodeStore
}

/** So many failures in a row, and the Job is to be started anew by whoever watches it. */
const FAILURES_MAX = 10
/** Trying again mends no secret: whoever starts a refill can tell it from other failures. */
const OTHER_SECRET_EXIT = 3
const PAUSE_MS = 100
const PAUSE_MS_MAX = 5000

/** Fills the pool; resolves to the exit code. Throws OperatorError. */
async function refill(given: Refilling): Promise<number> {
  const { config, log, metrics, cassandra, codes, signal } = given
  const { CODE_POOL: pool, CODE_SECRET_FILE: secret, POOL_TARGET: target } = config
  const begunMs = performance.now()
  const secretFingerprint = fingerprintOf(secret)
  const progress = { failures: 0, from: undefined as Pool | undefined }
  const deps: RefillDeps = {
    codes,
    pool,
    permutation: createPermutation(secret),
    secretFingerprint,
    metrics,
    signal,
    onMinted: (row) => {
      progress.failures = 0
      log.info({ ...standingOf(row), target }, 'minted')
    },
  }
  const fill = async () => {
    progress.from ??= await codes.insertPoolIfAbsent({ pool, secretFingerprint })
    const row = await refillPool(deps, { lowWater: target, target })
    await keepTarget(cassandra, { pool, target })
    return row
  }
  const isEnding = () => signal.aborted
  while (!isEnding()) {
    try {
      const row = await fill()
      const mintedBlocks = row.minted - (progress.from?.minted ?? 0)
      const seconds = Math.round(performance.now() - begunMs) / 1000
      const isDone = !isEnding() // codes may have been claimed meanwhile: that is their use
      log.info({ ...standingOf(row), target, mintedBlocks, seconds }, isDone ? 'filled' : 'stopped')
      return isDone ? 0 : 1
    } catch (error) {
      if (error instanceof OtherSecretError) {
        process.stderr.write(`curtail: ${error.message}\n`)
        return OTHER_SECRET_EXIT
      }
      if (!(error instanceof StoreError)) throw error
      if (++progress.failures > FAILURES_MAX) {
        throw new OperatorError(`the store did not answer ${FAILURES_MAX} times in a row`)
      }
      log.warn({ err: error, failures: progress.failures }, 'the store did not answer')
      await pause(Math.min(PAUSE_MS * 2 ** progress.failures, PAUSE_MS_MAX), signal)
    }
  }
  log.info({ pool, target }, 'stopped')
  return 1
}

function standingOf(row: Pool) {
  const { pool, minted, claimed } = row
  return { pool, level: levelOf(row), minted, claimed }
}
