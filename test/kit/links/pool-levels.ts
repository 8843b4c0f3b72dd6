// Reads the level of a pool while refills and claims run: neither the rows in the store nor the
// level that a process reports ever counts a block that does not exist.
import { setTimeout as sleep } from 'node:timers/promises'
import { BLOCK_SIZE } from '../../../src/codes/block.ts'
import { parseConfig } from '../../../src/config/config.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { claimBlock } from '../../../src/create/claim-block.ts'
import { openCassandra } from '../../../src/stores/cassandra/client.ts'
import { createCassandraCodeStore } from '../../../src/stores/cassandra/code-store.ts'
import { cassandraSettings } from '../../../src/stores/cassandra/settings.ts'
import { environmentOf, quiet } from '../../contract/open-cassandra.ts'
import type { Machine, ManyMachines } from '../processes/many-machines.ts'
import { openPoolReader, type PoolReader } from './pool-rows.ts'
import type { Random } from '../random.ts'
import { withinDeadline } from '../wait-for.ts'

const KEYSPACE = 'curtail'
const CLAIMERS = 2
const REFILLS = 2
const JOB_MS_MAX = 60_000
/** A refill is killed within this time, if at all. */
const KILL_MS = 2500
/** The interval between a claimer's claims, so that blocks exist for a while. */
const CLAIM_EVERY_MS = 30

/** The counts of a run. */
export interface PoolLevels {
  readonly minted: number
  readonly claimed: number
  /** How many times the store and the level that a process reports were compared. */
  readonly checks: number
  /** How many of these checks overlapped a claim or a refill. */
  readonly moved: number
}

/** Refills and claims for `rounds` rounds. Throws if a level or a code is wrong. */
export async function watchLevels(options: {
  machines: ManyMachines
  pool: string
  rounds: number
  random: Random
}): Promise<PoolLevels> {
  const { machines, pool, rounds, random } = options
  const reader = openPoolReader(machines.cassandra)
  const stopping = new AbortController()
  const codes: string[] = []
  const target = 20 * BLOCK_SIZE
  try {
    await machines.startRefill({ pool, target: BLOCK_SIZE }).succeeded(JOB_MS_MAX)
    const claiming = Array.from({ length: CLAIMERS }, () =>
      claimUntil(machines, { pool, codes, signal: stopping.signal }),
    )
    const watching = watch({ machines, reader, pool, signal: stopping.signal })
    try {
      for (let round = 0; round < rounds && !watching.hasFailed(); round++) {
        await refillOnce(machines, { pool, target, random })
      }
    } finally {
      stopping.abort()
      await Promise.allSettled([...claiming, watching.completed])
    }
    await Promise.all(claiming)
    const sum = await watching.completed
    const rows = await reader.read(pool)
    if (rows === undefined) throw new Error(`pool ${pool} does not exist`)
    const all = [...codes, ...rows.codes]
    if (new Set(all).size !== all.length) throw new Error('a code was issued twice')
    // A claim with an unknown outcome loses its block.
    if (codes.length > rows.claimed * BLOCK_SIZE) {
      throw new Error(`${String(rows.claimed)} blocks claimed, but ${String(codes.length)} codes`)
    }
    return { minted: rows.minted, claimed: rows.claimed, ...sum }
  } finally {
    await reader.close()
  }
}

/** Runs refills concurrently; one of them may be killed. */
async function refillOnce(
  machines: ManyMachines,
  { pool, target, random }: { pool: string; target: number; random: Random },
): Promise<void> {
  const jobs = Array.from({ length: REFILLS }, () => machines.startRefill({ pool, target }))
  try {
    await Promise.all(
      jobs.map(async (job, i) => {
        if (i === 0) {
          await Promise.race([sleep(random.int(KILL_MS)), job.exited])
          job.kill()
        }
        const { exitStatus, stderr } = await withinDeadline('a refill', job.exited, JOB_MS_MAX)
        if (exitStatus !== 0 && exitStatus !== 'SIGKILL')
          throw new Error(`a refill: ${String(exitStatus)} ${stderr}`)
      }),
    )
  } finally {
    for (const job of jobs) job.kill()
  }
}

/** Claims block after block, as a process that creates very many links does. */
async function claimUntil(
  { cassandra: cluster }: ManyMachines,
  options: { pool: string; codes: string[]; signal: AbortSignal },
): Promise<void> {
  const { pool, codes, signal } = options
  const config = parseConfig(cassandraSettings, environmentOf(cluster, KEYSPACE))
  const cassandra = openCassandra({ config, metrics: createMetrics(), log: quiet })
  try {
    await cassandra.ready
    const never = new AbortController().signal
    const deps = { codes: createCassandraCodeStore(cassandra), pool, signal: never }
    while (!signal.aborted) {
      const claimed = await claimBlock(deps)
      if (claimed.kind === 'block') codes.push(...claimed.codes)
      await sleep(CLAIM_EVERY_MS)
    }
  } finally {
    await cassandra.close()
  }
}

function watch(options: {
  machines: ManyMachines
  reader: PoolReader
  pool: string
  signal: AbortSignal
}) {
  const { machines, reader, pool, signal } = options
  const sum = { checks: 0, moved: 0 }
  let hasFailed = false
  const compare = async () => {
    for (let i = 0; !signal.aborted; i++) {
      const machine = machines.creates[i % machines.creates.length]
      if (machine === undefined) throw new Error('no create process to query')
      const before = await readWhole(reader, pool)
      const level = await levelAt(machine, pool)
      const after = await readWhole(reader, pool)
      const levelMax = (after.minted - before.claimed) * BLOCK_SIZE
      const levelMin = (before.minted - after.claimed) * BLOCK_SIZE
      if (level < levelMin || level > levelMax) {
        throw new Error(
          `a level of ${String(level)}, from ${String(levelMin)} to ${String(levelMax)}`,
        )
      }
      sum.checks++
      if (after.minted !== before.minted || after.claimed !== before.claimed) sum.moved++
    }
    return sum
  }
  const completed = compare().catch((error: unknown) => {
    hasFailed = true
    throw error
  })
  completed.catch(() => undefined) // the caller that awaits it handles the error
  return { hasFailed: () => hasFailed, completed }
}

async function readWhole(reader: PoolReader, pool: string) {
  const rows = await reader.read(pool)
  if (rows === undefined) throw new Error(`unknown pool ${pool}`)
  if (rows.absent.length === 0) return rows
  throw new Error(`the level of ${pool} counts blocks that do not exist: ${rows.absent.join()}`)
}

/** The level that a process reports. */
async function levelAt(machine: Machine, pool: string): Promise<number> {
  const response = await machine.admin({ path: '/pools' })
  const pools = (await response.json()) as { pool: string; level: number }[]
  const level = pools.find((one) => one.pool === pool)?.level
  if (level === undefined) throw new Error(`${machine.adminUrl} does not report pool ${pool}`)
  return level
}
