// `curtail pool raise`: after a restore from a backup, skips the blocks of codes that were claimed
// since. Connects to Cassandra, because no create pod, and therefore no admin API, may run then.
import { SEQ_MAX } from '../codes/block.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createLog } from '../telemetry/log.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { raisePool, type RaisePoolDeps } from '../pools/raise-pool.ts'
import { StoreError } from '../resilience/store-error.ts'
import { type CassandraSession, openCassandra } from '../stores/cassandra/client.ts'
import { createCassandraCodeStore, readPools } from '../stores/cassandra/code-store.ts'
import { raiseClaimed } from '../stores/cassandra/raise-claimed.ts'
import { cassandraDependentSettings, cassandraSettings } from '../stores/cassandra/settings.ts'

const CONNECT_MS_MAX = 30_000
/** More blocks are probably a typing error: 100 million codes are a month at the design load. */
const SKIPPED_MAX = 100_000

/** `pool raise`. */
export const role = defineRole({
  usage: 'pool raise POOL=BLOCK... [--force]',
  about:
    'After a restore of Cassandra from a backup, skips the blocks of codes that were claimed\n' +
    'since the backup: claims of POOL continue after BLOCK. Every pool must be listed; a pool\n' +
    'that has claimed BLOCK already is not changed. May be repeated. Prints the last claimed\n' +
    `block of each pool. --force allows skipping more than ${SKIPPED_MAX} blocks of a pool.`,
  settings: cassandraSettings,
  dependent: cassandraDependentSettings,
  run: async ({ config, args, signal }) => {
    const wanted = parseArguments(args)
    const rejected = new AbortController()
    const timeout = AbortSignal.timeout(CONNECT_MS_MAX)
    let fault = 'no node responds'
    const cassandra = openCassandra({
      config,
      metrics: createMetrics(),
      log: createLog({ role: 'pool', level: 'silent' }), // the output is a table
      signal: AbortSignal.any([signal, timeout, rejected.signal]),
      onFault({ kind, sentence }) {
        fault = sentence
        if (kind !== 'unreachable') rejected.abort()
      },
    })
    try {
      if ((await cassandra.ready) === 'closed') throw new OperatorError(fault)
      process.stdout.write(await raiseAll(cassandra, { wanted, force: args.includes('--force') }))
      return { exitCode: 0 }
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      throw new OperatorError(`Cassandra failed, repeat the command: ${error.message}`)
    } finally {
      await cassandra.close()
    }
  },
})

/** The block of each pool. Throws UsageError. */
function parseArguments(args: readonly string[]): ReadonlyMap<string, number> {
  const [subcommand, ...rest] = args
  const pairs = rest.filter((arg) => arg !== '--force')
  if (subcommand !== 'raise' || pairs.length === 0)
    throw new UsageError('pool raise requires POOL=BLOCK for every pool, such as default=5000')
  const wanted = new Map<string, number>()
  for (const pair of pairs) {
    const [, pool = '', block = ''] = /^(.+)=(\d+)$/.exec(pair) ?? []
    const number = Number(block)
    if (pool === '' || number < 1 || number > SEQ_MAX) {
      const allowed = `must be POOL=BLOCK, with BLOCK from 1 to ${SEQ_MAX}`
      throw new UsageError(`each argument of pool raise ${allowed}: it is ${JSON.stringify(pair)}`)
    }
    if (wanted.has(pool)) throw new UsageError(`pool ${pool} occurs twice`)
    wanted.set(pool, number)
  }
  return wanted
}

/** Checks all pools, and then raises each; resolves to the report. Throws OperatorError. */
async function raiseAll(
  cassandra: CassandraSession,
  given: { readonly wanted: ReadonlyMap<string, number>; readonly force: boolean },
): Promise<string> {
  const { wanted, force } = given
  const pools = await readPools(cassandra)
  const known = new Set(pools.map(({ pool }) => pool))
  const unknown = [...wanted.keys()].filter((pool) => !known.has(pool))
  if (unknown.length > 0) {
    const names = [...known].join(', ') || 'none'
    throw new OperatorError(`unknown pool ${unknown.join(', ')}: the keyspace has ${names}`)
  }
  const missing = pools.filter(({ pool }) => !wanted.has(pool))
  if (missing.length > 0) {
    const kept = missing.map(({ pool, claimed }) => `${pool} (claimed: ${claimed})`).join(', ')
    throw new OperatorError(`nothing raised: every pool must be listed; these are not: ${kept}`)
  }
  for (const { pool, claimed } of pools) {
    const skipped = (wanted.get(pool) ?? 0) - claimed
    if (skipped <= SKIPPED_MAX || force) continue
    throw new OperatorError(
      `nothing raised: pool ${pool} would skip ${skipped} blocks from ${claimed}, and at most ` +
        `${SKIPPED_MAX} are allowed without --force`,
    )
  }
  const deps: RaisePoolDeps = {
    codes: createCassandraCodeStore(cassandra),
    raiseClaimed: (change) => raiseClaimed(cassandra, change),
  }
  const rows: string[][] = []
  for (const [pool, to] of wanted) {
    const { before, after } = await raisePool(deps, { pool, to })
    rows.push([pool, String(before.claimed), String(after.claimed)])
  }
  return renderTable(['POOL', 'CLAIMED BEFORE', 'CLAIMED'], rows)
}
