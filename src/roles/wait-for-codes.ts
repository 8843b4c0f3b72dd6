// `curtail wait-for-codes`: an init container of create pods. Waits, for a bounded time, until the
// pool has its first codes, so that a ready pod can create links. Read-only.
import { retryUntilStopped } from '../resilience/retry-until-deadline.ts'
import { createLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defineRole } from '../process/role.ts'
import { integerSetting, logLevelSetting } from '../config/settings.ts'
import type { StoreError } from '../resilience/store-error.ts'
import { codePoolSetting } from '../create/settings.ts'
import { openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore } from '../stores/cassandra/code-store.ts'
import { cassandraDependentSettings, cassandraSettings } from '../stores/cassandra/settings.ts'

const settings = {
  ...cassandraSettings,
  CODE_POOL: codePoolSetting,
  WAIT_SECONDS: integerSetting('seconds to wait for the first codes', {
    min: 0,
    max: 86_400,
    fallback: 300,
  }),
  LOG_LEVEL: logLevelSetting,
} as const

const PAUSES = { firstMs: 500, maxMs: 500 }

/** `wait-for-codes`. */
export const role = defineRole({
  name: 'wait-for-codes',
  about:
    'Waits until the pool CODE_POOL has received its first codes, even if none is left, or\n' +
    'until WAIT_SECONDS have passed. Exits with 0 in both cases: without codes, create pods can\n' +
    'still create links with an alias.',
  settings,
  dependent: cassandraDependentSettings,
  run: async ({ config, signal }) => {
    const log = createLog({ role: 'wait-for-codes', level: config.LOG_LEVEL })
    const timedOut = AbortSignal.timeout(config.WAIT_SECONDS * 1000)
    const stopping = AbortSignal.any([signal, timedOut])
    const cassandra = openCassandra({ config, metrics: createMetrics(), log, signal: stopping })
    try {
      const codes = createCassandraCodeStore(cassandra)
      await cassandra.ready
      const logFields = { pool: config.CODE_POOL }
      let isLogged = false
      const onFailure = (err: StoreError) => {
        log.warn({ err }, 'call of Cassandra failed: retrying')
      }
      const retries = { signal: stopping, pauses: PAUSES, random: () => 1, onFailure }
      const outcome = await retryUntilStopped(retries, async () => {
        const pool = await codes.readPoolSerial(config.CODE_POOL)
        if ((pool?.minted ?? 0) > 0) return 'filled'
        if (!isLogged)
          log.info(logFields, 'waiting for the first codes of the pool: see the refill Job')
        isLogged = true
        return 'failed'
      })
      if (outcome === 'filled') log.info(logFields, 'pool filled')
      else
        log.warn(
          logFields,
          'stopped waiting, no codes found: without codes, only aliases can be created',
        )
    } finally {
      await cassandra.close()
    }
    return { exitCode: signal.aborted ? 1 : 0 }
  },
})
