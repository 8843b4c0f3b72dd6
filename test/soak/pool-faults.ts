// Pools that run empty, refills that are killed at any moment, create pods killed while they hold
// codes: no code twice, no block lost by a refill, and few codes lost by a killed create pod.
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { type HttpClient, openHttpClient } from '../kit/http/http-client.ts'
import {
  linkRequestOf,
  expectRedirect,
  openHttpClients,
  problemOf,
  describeResponse,
} from '../kit/http/machine-clients.ts'
import {
  type Machine,
  type ManyMachines,
  startManyMachines,
} from '../kit/processes/many-machines.ts'
import { type PoolLevels, watchLevels } from '../kit/links/pool-levels.ts'
import { readPoolRows } from '../kit/links/pool-rows.ts'
import { createRandom, type Random } from '../kit/random.ts'
import { type RawResponse, headerOf } from '../kit/http/raw-http.ts'
import { withinDeadline, waitFor } from '../kit/wait-for.ts'

const FULL_REFILL_ROUNDS = 200
const FULL_KILLS = 40
const FULL_LEVEL_ROUNDS = 40
const FLIGHT = 64
const BLOCK = 1000
const REFILLS = 4
/** A refill takes about this long; some are killed before they have begun. */
const REFILL_MS = 2500
const JOB_MS_MAX = 60_000
/** A refill of 100 blocks that lost its connections has ended long before. */
const END_MS_MAX = 30_000
/** A creator is killed after at most so many codes, wherever it then is in its blocks. */
const TOLD_MAX = 2500

let pools = 0
const newPool = (what: string) => `${what}/${String(process.pid)}-${String(++pools)}`
const aTarget = (what: string) => `https://example.com/pool/${what}`

/** Empties a pool of one block and fills it again; how many codes it gave. */
export async function emptyPool(machines: ManyMachines): Promise<number> {
  const pool = newPool('empty')
  await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
  const machine = await machines.startMachine('create', { CODE_POOL: pool })
  const creator = openHttpClient(machine.port)
  const readers = openHttpClients(machines.redirects)
  try {
    const codes: string[] = []
    const refusals: RawResponse[] = []
    const drain = async () => {
      while (refusals.length === 0) {
        const answer = await creator.send(createLinkRequest({ long_url: aTarget(pool) }))
        if (answer.status === 201) codes.push(codeOf(answer))
        else if (answer.status === 503) refusals.push(answer)
        else throw new Error(`a create: ${describeResponse(answer)}`)
      }
    }
    await Promise.all(Array.from({ length: FLIGHT }, drain))
    for (const answer of refusals) {
      const says = [problemOf(answer), Number(headerOf(answer, 'Retry-After')) > 0]
      if (says.join() !== 'pool-empty,true') throw new Error(`empty: ${describeResponse(answer)}`)
    }
    mustBeDistinct(codes)
    const alias = `e-${String(Math.floor(Math.random() * 1e7))}`
    // At the first try: who wants an alias does not wait for codes.
    const made = await creator.send(
      createLinkRequest({ long_url: aTarget(alias), custom_alias: alias }),
    )
    if (codeOf(made) !== alias) throw new Error(`${alias} was made as ${codeOf(made)}`)
    await createByKeyOnce(creator, `k${alias}`)
    for (const reader of readers.all) {
      await expectRedirect(reader, alias, aTarget(alias))
      for (const code of codes.slice(-3)) await expectRedirect(reader, code, aTarget(pool))
    }
    const { status } = await fetch(`${machine.adminUrl}/readyz`)
    if (status !== 200) throw new Error(`/readyz is ${String(status)} while the pool is empty`)
    await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
    await waitFor('a generated code again', () => isCreated(creator, aTarget(pool)))
    return codes.length
  } finally {
    creator.close()
    readers.close()
    await machine.stop()
  }
}

/** A create with a key and an alias succeeds at the first attempt, and a retry replays it. */
async function createByKeyOnce(creator: HttpClient, alias: string): Promise<void> {
  const ask = linkRequestOf({ key: `alias-${alias}`, target: aTarget(alias), alias })
  for (const replayed of [undefined, 'true']) {
    const answer = await creator.send(ask)
    const isReplayed = headerOf(answer, 'Idempotency-Replayed') === replayed
    if (codeOf(answer) !== alias || !isReplayed) throw new Error(describeResponse(answer))
  }
}

async function isCreated(creator: HttpClient, target: string): Promise<boolean> {
  return (await creator.send(createLinkRequest({ long_url: target }))).status === 201
}

function mustBeDistinct(codes: readonly string[]): void {
  const seen = new Set<string>()
  for (const code of codes) {
    if (seen.has(code)) throw new Error(`the code ${code} is there twice`)
    seen.add(code)
  }
}

/** The result of the refill rounds. */
export interface RefillRounds {
  readonly rounds: number
  readonly killed: number
  readonly ended: number
  readonly blocks: number
}

/** Four concurrent refills of one pool, some killed, some with their connections reset. */
export async function refillRounds(given: {
  machines: ManyMachines
  rounds: number
  seed: number
  /** Of rounds in which every connection to Cassandra is cut. @default 0.3 */
  cutRatio?: number
}): Promise<RefillRounds> {
  const { machines, rounds, cutRatio = 0.3 } = given
  const random = createRandom(given.seed)
  const pool = newPool('refills')
  const sum = { rounds, killed: 0, ended: 0 }
  let target = 0
  for (let round = 0; round < rounds; round++) {
    target += BLOCK * (1 + random.int(4))
    const isCut = random.chance(cutRatio)
    await refillAtOnce({ machines, pool, target, random, sum, isCut })
    await readWhole(machines, pool)
  }
  await machines.startRefill({ pool, target }).succeeded(JOB_MS_MAX)
  const { minted, codes } = await readWhole(machines, pool)
  if (minted !== target / BLOCK) throw new Error(`${String(minted)} blocks for ${String(target)}`)
  mustBeDistinct(codes)
  return { ...sum, blocks: minted }
}

async function refillAtOnce(given: {
  machines: ManyMachines
  pool: string
  target: number
  random: Random
  isCut: boolean
  sum: { killed: number; ended: number }
}): Promise<void> {
  const { machines, pool, target, random, isCut, sum } = given
  const jobs = Array.from({ length: REFILLS }, () => machines.startRefill({ pool, target }))
  const cutting = isCut ? cutAll(machines, random.int(REFILL_MS)) : Promise.resolve()
  try {
    await Promise.all(
      jobs.map(async (job) => {
        if (random.chance(0.7)) {
          const afterMs = random.int(REFILL_MS)
          await Promise.race([sleep(afterMs), job.exited])
          job.kill()
        }
        const { exitStatus, stderr, stdout } = await withinDeadline(
          'a refill',
          job.exited,
          JOB_MS_MAX,
        ).catch((error: unknown) => {
          throw new Error(`a refill of ${String(target)} said: ${job.output()}`, { cause: error })
        })
        if (exitStatus === 'SIGKILL') sum.killed++
        else if (exitStatus === 0) sum.ended++
        else throw new Error(`a refill ended with ${String(exitStatus)}: ${stderr}${stdout}`)
      }),
    )
  } finally {
    for (const job of jobs) job.kill()
    await cutting
  }
}

async function cutAll({ cassandra }: ManyMachines, afterMs: number): Promise<void> {
  await sleep(afterMs)
  cassandra.nodes.forEach((_, at) => {
    cassandra.proxy(at).cut()
  })
}

/** Refills and claims at once, while the level is read. */
export function watchPoolLevels(given: {
  machines: ManyMachines
  rounds: number
  seed: number
}): Promise<PoolLevels> {
  const { machines, rounds, seed } = given
  return watchLevels({ machines, pool: newPool('levels'), rounds, random: createRandom(seed) })
}

/** Cuts every connection of a refill at work, once: it fills the pool and ends all the same. */
export async function disconnectRefill(machines: ManyMachines): Promise<string> {
  const job = machines.startRefill({ pool: newPool('cut'), target: 100 * BLOCK })
  await waitFor('the first blocks', () => job.output().includes('"minted"'), JOB_MS_MAX)
  await cutAll(machines, 0)
  return job.succeeded(END_MS_MAX)
}

/** The pool as stored. Throws if its level counts a block that does not exist. */
async function readWhole({ cassandra }: ManyMachines, pool: string) {
  const rows = await readPoolRows(cassandra, pool)
  if (rows === undefined) return { minted: 0, claimed: 0, codes: [] }
  if (rows.absent.length > 0) throw new Error(`${pool} lacks the blocks ${rows.absent.join()}`)
  return rows
}

/** A refill with another secret reports that and changes nothing. */
export async function rejectOtherSecret(machines: ManyMachines): Promise<string> {
  const pool = newPool('secret')
  await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
  const secretFile = await machines.makeSecret()
  const job = machines.startRefill({ pool, target: 3 * BLOCK, secretFile })
  const { exitStatus, stderr } = await withinDeadline('the refusal', job.exited, JOB_MS_MAX)
  const { minted } = await readWhole(machines, pool)
  if (exitStatus === 3 && stderr.includes('another code secret') && minted === 1) return stderr.trim()
  throw new Error(`another secret: ${String(exitStatus)}, ${String(minted)} blocks, ${stderr}`)
}

/** The result of killing create pods. */
export interface KilledCreatePods {
  readonly kills: number
  readonly told: number
  /** Codes of claimed blocks that nobody was told: the most that one process took with it. */
  readonly lostMax: number
}

/** What one process may take with it: what it holds, one claim in flight, requests in flight. */
const LOST_MAX = 1.2 * BLOCK + BLOCK + FLIGHT

/** Kills one create pod after the other under load; throws if one loses more than it may hold. */
export async function killCreatePods(given: {
  machines: ManyMachines
  kills: number
  seed: number
}): Promise<KilledCreatePods> {
  const { machines, kills } = given
  const random = createRandom(given.seed)
  const pool = newPool('killed')
  await machines.startRefill({ pool, target: BLOCK * 4 * (kills + 1) }).succeeded(JOB_MS_MAX)
  const codes: string[] = []
  let [claimedBefore, lostMax] = [0, 0]
  for (let kill = 0; kill < kills; kill++) {
    const machine = await machines.startMachine('create', { CODE_POOL: pool })
    const told = await createUntilKilled(machine, 1 + random.int(TOLD_MAX))
    codes.push(...told)
    const { claimed } = await readWhole(machines, pool)
    const lost = (claimed - claimedBefore) * BLOCK - told.length
    if (lost > LOST_MAX) throw new Error(`creator ${String(kill)} lost ${String(lost)} codes`)
    claimedBefore = claimed
    lostMax = Math.max(lostMax, lost)
  }
  mustBeDistinct(codes)
  return { kills, told: codes.length, lostMax }
}

async function createUntilKilled(machine: Machine, toldMin: number): Promise<string[]> {
  const httpClient = openHttpClient(machine.port)
  const codes: string[] = []
  const work = async () => {
    for (;;) {
      const answer = await httpClient
        .send(createLinkRequest({ long_url: aTarget('killed') }))
        .catch(() => {
          return undefined // it is dead
        })
      if (answer === undefined) return
      codes.push(codeOf(answer))
    }
  }
  const working = Promise.all(Array.from({ length: FLIGHT }, work))
  const isLoaded = () => codes.length >= toldMin
  await Promise.race([waitFor('codes before the kill', isLoaded, JOB_MS_MAX), working])
  machine.child.kill('SIGKILL')
  await machine.exited
  await working
  httpClient.close()
  return codes
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const { seed, log } = given
  const machines = await startManyMachines({ codes: 2000 })
  try {
    log(`emptied after ${String(await emptyPool(machines))} codes`)
    log(await rejectOtherSecret(machines))
    log(await disconnectRefill(machines))
    const levels = { machines, rounds: FULL_LEVEL_ROUNDS, seed }
    log(JSON.stringify(await watchPoolLevels(levels)))
    log(JSON.stringify(await killCreatePods({ machines, kills: FULL_KILLS, seed })))
    const refills = { machines, rounds: FULL_REFILL_ROUNDS, seed }
    log(JSON.stringify(await refillRounds(refills)))
  } finally {
    await machines.stop()
  }
}
