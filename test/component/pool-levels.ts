// A pool that is refilled and claimed from at the same time, while its level is read: it never
// counts a block that is not there, whether the store is read or a process is asked.
import { setTimeout as sleep } from 'node:timers/promises'
import { BLOCK_SIZE } from '../../src/codes/block.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { claimBlock } from '../../src/create/claim-block.ts'
import { openCassandra } from '../../src/stores/cassandra/client.ts'
import { createCassandraCodeStore } from '../../src/stores/cassandra/code-store.ts'
import { cassandraSettings } from '../../src/stores/cassandra/settings.ts'
import { environmentOf, quiet } from '../contract/open-cassandra.ts'
import type { Machine, ManyMachines } from './many-machines.ts'
import { openPoolReader, type PoolReader } from './pool-rows.ts'
import type { Random } from './random.ts'
import { inTime } from './wait-for.ts'

const KEYSPACE = 'curtail'
const CLAIMERS = 2
const REFILLS = 2
const JOB_MS_MAX = 60_000
/** A refill is killed within this time, if at all. */
const KILL_MS = 2500
/** Between a claimer's claims, so that blocks are there for a while. */
const CLAIM_EVERY_MS = 30

/** What a run gave. */
export interface PoolLevels {
  readonly minted: number
  readonly claimed: number
  /** How often the store was read, and processes were asked. */
  readonly looks: number
  /** Reads between which blocks were claimed or minted. */
  readonly moved: number
}

/** Refills and claims, so many rounds. Throws what it found. */
export async function watchLevels(given: {
  machines: ManyMachines
  pool: string
  rounds: number
  random: Random
}): Promise<PoolLevels> {
  const { machines, pool, rounds, random } = given
  const reader = openPoolReader(machines.cassandra)
  const ending = new AbortController()
  const codes: string[] = []
  const target = 20 * BLOCK_SIZE
  try {
    await machines.startRefill({ pool, target: BLOCK_SIZE }).succeeded(JOB_MS_MAX)
    const claiming = Array.from({ length: CLAIMERS }, () =>
      claimUntil(machines, { pool, codes, signal: ending.signal }),
    )
    const watching = watch({ machines, reader, pool, signal: ending.signal })
    try {
      for (let round = 0; round < rounds && !watching.hasFailed(); round++) {
        await refillOnce(machines, { pool, target, random })
      }
    } finally {
      ending.abort()
      await Promise.allSettled([...claiming, watching.ended])
    }
    await Promise.all(claiming)
    const sum = await watching.ended
    const rows = await reader.read(pool)
    if (rows === undefined) throw new Error(`${pool} is gone`)
    const all = [...codes, ...rows.codes]
    if (new Set(all).size !== all.length) throw new Error('a code was handed out twice')
    // Of a claim whose outcome could not be learnt the block is lost.
    if (codes.length > rows.claimed * BLOCK_SIZE) {
      throw new Error(`${String(rows.claimed)} blocks claimed, but ${String(codes.length)} codes`)
    }
    return { minted: rows.minted, claimed: rows.claimed, ...sum }
  } finally {
    await reader.close()
  }
}

/** Some refills at once, one of which may be killed. */
async function refillOnce(
  machines: ManyMachines,
  { pool, target, random }: { pool: string; target: number; random: Random },
): Promise<void> {
  const jobs = Array.from({ length: REFILLS }, () => machines.startRefill({ pool, target }))
  try {
    await Promise.all(
      jobs.map(async (job, i) => {
        if (i === 0) {
          await Promise.race([sleep(random.int(KILL_MS)), job.ended])
          job.kill()
        }
        const { how, stderr } = await inTime('a refill', job.ended, JOB_MS_MAX)
        if (how !== 0 && how !== 'SIGKILL') throw new Error(`a refill: ${String(how)} ${stderr}`)
      }),
    )
  } finally {
    for (const job of jobs) job.kill()
  }
}

/** Claims block after block, as a process does that creates very many links. */
async function claimUntil(
  { cassandra: cluster }: ManyMachines,
  given: { pool: string; codes: string[]; signal: AbortSignal },
): Promise<void> {
  const { pool, codes, signal } = given
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

function watch(given: {
  machines: ManyMachines
  reader: PoolReader
  pool: string
  signal: AbortSignal
}) {
  const { machines, reader, pool, signal } = given
  const sum = { looks: 0, moved: 0 }
  let hasFailed = false
  const look = async () => {
    for (let i = 0; !signal.aborted; i++) {
      const machine = machines.creates[i % machines.creates.length]
      if (machine === undefined) throw new Error('there is nobody to ask')
      const before = await readWhole(reader, pool)
      const level = await levelAt(machine, pool)
      const after = await readWhole(reader, pool)
      const most = (after.minted - before.claimed) * BLOCK_SIZE
      const least = (before.minted - after.claimed) * BLOCK_SIZE
      if (level < least || level > most) {
        throw new Error(`a level of ${String(level)}, from ${String(least)} to ${String(most)}`)
      }
      sum.looks++
      if (after.minted !== before.minted || after.claimed !== before.claimed) sum.moved++
    }
    return sum
  }
  const ended = look().catch((error: unknown) => {
    hasFailed = true
    throw error
  })
  ended.catch(() => undefined) // thrown again by who waits for it
  return { hasFailed: () => hasFailed, ended }
}

async function readWhole(reader: PoolReader, pool: string) {
  const rows = await reader.read(pool)
  if (rows === undefined) throw new Error(`unknown pool ${pool}`)
  if (rows.absent.length === 0) return rows
  throw new Error(`the level of ${pool} counts blocks that are not there: ${rows.absent.join()}`)
}

/** What a process says of the level. */
async function levelAt(machine: Machine, pool: string): Promise<number> {
  const answer = await machine.admin({ path: '/pools' })
  const pools = (await answer.json()) as { pool: string; level: number }[]
  const level = pools.find((one) => one.pool === pool)?.level
  if (level === undefined) throw new Error(`${machine.adminUrl} knows of no pool ${pool}`)
  return level
}
