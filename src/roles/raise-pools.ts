// `curtail pool raise`: after a restore, skips the blocks of codes that were claimed after the
// backup. Connects to Cassandra: no create pod may run meanwhile, so there is no admin API.
import { randomUUID } from 'node:crypto'
import { SEQ_MAX } from '../codes/block.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createLog } from '../telemetry/log.ts'
import { jsonFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { raisePool, type RaisePoolDeps } from '../pools/raise-pool.ts'
import { StoreError } from '../resilience/store-error.ts'
import { type CassandraSession, openCassandra } from '../stores/cassandra/client.ts'
import {
  createCassandraCodeStore,
  type PoolRecord,
  readPools,
  takeNumber,
} from '../stores/cassandra/code-store.ts'
import { rejectionOf } from '../stores/cassandra/failed-outcome.ts'
import { raiseClaimed } from '../stores/cassandra/raise-claimed.ts'
import { cassandraDependentSettings, cassandraSettings } from '../stores/cassandra/settings.ts'

const CONNECT_MS_MAX = 30_000
/** The highest BLOCK: a billion codes stay usable, because a raised number cannot be lowered. */
const BLOCK_MAX = SEQ_MAX - 1_000_000
/** More blocks are probably a typing error: 100 million codes are a month at the design load. */
const SKIPPED_MAX = 100_000
const CREATED_MAX = 63

const commands = {
  raise: {
    about: 'after a restore, skips the blocks of codes that were claimed since the backup',
    operands: ['POOL=BLOCK...'],
    flags: {
      created: {
        about: 'number of pools that were created since the backup; give it once',
        value: 'COUNT',
      },
      force: { about: `allows skipping more than ${SKIPPED_MAX} blocks of a pool` },
      ...jsonFlag,
    },
  },
} as const

/** `pool raise`. */
export const role = defineRole({
  name: 'pool',
  about:
    'After a restore of Cassandra from a backup, skips the blocks of codes that were claimed\n' +
    'since the backup: claims of POOL continue after BLOCK. Every pool must be listed; a pool\n' +
    'that has claimed BLOCK already is not changed. May be repeated with the same blocks.\n' +
    'The restored keyspace does not contain pools that were created since the backup; they are\n' +
    'created later, with other codes.',
  commands,
  settings: cassandraSettings,
  dependent: cassandraDependentSettings,
  check: parseRaise,
  run: async ({ config, args, signal }) => {
    const wanted = parseRaise(args)
    const rejected = new AbortController()
    const timeout = AbortSignal.timeout(CONNECT_MS_MAX)
    let fault = `no node of ${config.CASSANDRA_CONTACT_POINTS.join(', ')} responds`
    const cassandra = openCassandra({
      config,
      metrics: createMetrics(),
      log: createLog({ role: 'pool', level: 'silent' }), // the output is for people
      signal: AbortSignal.any([signal, timeout, rejected.signal]),
      onFault({ kind, sentence }) {
        fault = sentence
        if (kind !== 'unreachable') rejected.abort()
      },
    })
    try {
      if ((await cassandra.ready) === 'closed')
        throw new OperatorError(signal.aborted ? 'stopped: nothing is raised' : fault)
      await raiseAll(cassandra, wanted)
      return { exitCode: 0 }
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const rejection = rejectionOf(error.cause)
      throw new OperatorError(
        rejection === undefined
          ? `${error.message}: repeat the command`
          : `Cassandra rejects a statement: ${rejection}`,
      )
    } finally {
      await cassandra.close()
    }
  },
})

interface Wanted {
  /** The last block to skip of each pool. */
  readonly blocks: ReadonlyMap<string, number>
  readonly created: number
  readonly isForced: boolean
  readonly isJson: boolean
}

/** Throws UsageError. */
function parseRaise({ operands, flags }: Parsed<typeof commands>): Wanted {
  const blocks = new Map<string, number>()
  for (const operand of operands) {
    const [, pool = '', digits = ''] = /^(.+)=(\d+)$/.exec(operand) ?? []
    const block = Number(digits)
    if (pool === '' || block < 1 || block > BLOCK_MAX) {
      const allowed = `POOL=BLOCK, with BLOCK from 1 to ${BLOCK_MAX}, such as default=5000`
      const given = JSON.stringify(operand)
      throw new UsageError(`each argument of pool raise must be ${allowed}: it is ${given}`)
    }
    if (blocks.has(pool)) throw new UsageError(`pool ${pool} occurs twice`)
    blocks.set(pool, block)
  }
  return { blocks, created: parseCreated(flags.created), isForced: flags.force, isJson: flags.json }
}

/** Throws UsageError. */
function parseCreated(given: string | undefined): number {
  if (given === undefined) return 0
  const created = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (created >= 1 && created <= CREATED_MAX) return created
  const allowed = `--created=COUNT, with COUNT from 1 to ${CREATED_MAX}`
  throw new UsageError(`pool raise takes ${allowed}: it is "--created=${given}"`)
}

/** Checks all pools, and then raises each, with a line on stdout. Throws OperatorError. */
async function raiseAll(cassandra: CassandraSession, wanted: Wanted): Promise<void> {
  checkPools(await readPools(cassandra), wanted)
  const print = (result: object, line: string) => {
    process.stdout.write(wanted.isJson ? renderJsonLines([result]) : line)
  }
  for (let at = 1; at <= wanted.created; at++) {
    const number = await takeNumber(cassandra, `created after a backup ${randomUUID()}`)
    print({ pool_number: number }, `pool number ${number}: never used for another pool\n`)
  }
  const deps: RaisePoolDeps = {
    codes: createCassandraCodeStore(cassandra),
    raiseClaimed: (change) => raiseClaimed(cassandra, change),
  }
  for (const [pool, to] of wanted.blocks) {
    const { before, after } = await raisePool(deps, { pool, to })
    const claimed = { pool, claimed_before: before.claimed, claimed: after.claimed }
    print(
      claimed,
      before.claimed === after.claimed
        ? `${pool}: the last claimed block is ${after.claimed} already\n`
        : `${pool}: the last claimed block was ${before.claimed}, and is now ${after.claimed}\n`,
    )
  }
}

/** Throws OperatorError unless the arguments fit the pools of the keyspace. */
function checkPools(pools: readonly PoolRecord[], { blocks, isForced }: Wanted): void {
  const fail = (message: string) => new OperatorError(`nothing is raised: ${message}`)
  const known = pools.map(({ pool }) => pool)
  const unknown = [...blocks.keys()].filter((pool) => !known.includes(pool))
  if (unknown.length > 0) {
    const names = `the keyspace has ${known.join(', ') || 'no pools'}`
    const created = 'for pools that were created since the backup, use --created=COUNT'
    throw fail(`unknown pool ${unknown.join(', ')}: ${names}; ${created}`)
  }
  const missing = pools.filter(({ pool }) => !blocks.has(pool))
  if (missing.length > 0) {
    const shown = missing.map(({ pool, claimed }) => `${pool} (last claimed block: ${claimed})`)
    throw fail(`every pool must be listed; these are not: ${shown.join(', ')}`)
  }
  for (const { pool, claimed } of pools) {
    const skipped = (blocks.get(pool) ?? 0) - claimed
    if (skipped <= SKIPPED_MAX || isForced) continue
    const allowed = `without --force, at most ${SKIPPED_MAX} are allowed`
    throw fail(`pool ${pool} would skip ${skipped} blocks after ${claimed}: ${allowed}`)
  }
}
