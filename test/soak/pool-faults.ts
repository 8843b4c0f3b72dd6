// Pools run empty, refills and create pods are killed at any moment: no code is issued twice, a
// refill loses no block, and a create pod loses few codes.
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
const EMPTYING_FLIGHT = 16 // a slow store keeps its deadlines: only the pool may cause a 503
const BLOCK = 1000
const REFILLS = 4
/** A refill takes about this long; some are killed before they start. */
const REFILL_MS = 2500
const JOB_MS_MAX = 60_000
/** A refill of 100 blocks that lost its connections completes long before. */
const COMPLETE_MS_MAX = 30_000
/** A create pod is killed after at most this many creates, at any position in its blocks. */
const CREATES_MAX = 2500

let pools = 0
const newPool = (what: string) => `${what}/${String(process.pid)}-${String(++pools)}`
const targetOf = (what: string) => `https://example.com/pool/${what}`

/** Empties a pool of one block and refills it; returns the number of codes created. */
export async function emptyPool(machines: ManyMachines): Promise<number> {
  const pool = newPool('empty')
  await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
  const machine = await machines.startMachine('create', { CODE_POOL: pool })
  const client = openHttpClient(machine.port)
  const readers = openHttpClients(machines.redirects)
  try {
    const codes: string[] = []
    const rejections: RawResponse[] = []
    const drain = async () => {
      while (rejections.length === 0) {
        const response = await client.send(createLinkRequest({ long_url: targetOf(pool) }))
        if (response.status === 201) codes.push(codeOf(response))
        else if (response.status === 503) rejections.push(response)
        else throw new Error(`a create: ${describeResponse(response)}`)
      }
    }
    await Promise.all(Array.from({ length: EMPTYING_FLIGHT }, drain))
    for (const response of rejections) {
      const hasRetryAfter = Number(headerOf(response, 'Retry-After')) > 0
      if (problemOf(response) === 'pool-empty' && hasRetryAfter) continue
      throw new Error(`empty: ${describeResponse(response)}`)
    }
    expectDistinct(codes)
    const alias = `e-${String(Math.floor(Math.random() * 1e7))}`
    // Without a retry: a create with an alias needs no code of the pool.
    const created = await client.send(
      createLinkRequest({ long_url: targetOf(alias), custom_alias: alias }),
    )
    if (codeOf(created) !== alias) throw new Error(`${alias} was created as ${codeOf(created)}`)
    await createByKeyOnce(client, `k${alias}`)
    for (const reader of readers.all) {
      await expectRedirect(reader, alias, targetOf(alias))
      for (const code of codes.slice(-3)) await expectRedirect(reader, code, targetOf(pool))
    }
    const { status } = await fetch(`${machine.adminUrl}/readyz`)
    if (status !== 200) throw new Error(`/readyz is ${String(status)} while the pool is empty`)
    await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
    await waitFor('a generated code', async () => {
      const response = await client.send(createLinkRequest({ long_url: targetOf(pool) }))
      return response.status === 201
    })
    return codes.length
  } finally {
    client.close()
    readers.close()
    await machine.stop()
  }
}

/** A create with a key and an alias succeeds at the first attempt, and a retry replays it. */
async function createByKeyOnce(client: HttpClient, alias: string): Promise<void> {
  const request = linkRequestOf({ key: `alias-${alias}`, target: targetOf(alias), alias })
  for (const replayed of [undefined, 'true']) {
    const response = await client.send(request)
    const isReplayed = headerOf(response, 'Idempotency-Replayed') === replayed
    if (codeOf(response) !== alias || !isReplayed) throw new Error(describeResponse(response))
  }
}

function expectDistinct(codes: readonly string[]): void {
  const previous = new Set<string>()
  for (const code of codes) {
    if (previous.has(code)) throw new Error(`the code ${code} occurs twice`)
    previous.add(code)
  }
}

/** The result of the refill rounds. */
export interface RefillRounds {
  readonly rounds: number
  readonly killed: number
  readonly completed: number
  readonly blocks: number
}

/** Four concurrent refills of one pool, some killed, some with their connections reset. */
export async function refillRounds(given: {
  machines: ManyMachines
  rounds: number
  seed: number
  /** Share of rounds that reset every connection to Cassandra. @default 0.3 */
  resetRatio?: number
}): Promise<RefillRounds> {
  const { machines, rounds, resetRatio = 0.3 } = given
  const random = createRandom(given.seed)
  const pool = newPool('refills')
  const sum = { rounds, killed: 0, completed: 0 }
  let target = 0
  for (let round = 0; round < rounds; round++) {
    target += BLOCK * (1 + random.int(4))
    const isReset = random.chance(resetRatio)
    await refillConcurrently({ machines, pool, target, random, sum, isReset })
    await readPool(machines, pool)
  }
  await machines.startRefill({ pool, target }).succeeded(JOB_MS_MAX)
  const { minted, codes } = await readPool(machines, pool)
  if (minted !== target / BLOCK) throw new Error(`${String(minted)} blocks for ${String(target)}`)
  expectDistinct(codes)
  return { ...sum, blocks: minted }
}

async function refillConcurrently(given: {
  machines: ManyMachines
  pool: string
  target: number
  random: Random
  isReset: boolean
  sum: { killed: number; completed: number }
}): Promise<void> {
  const { machines, pool, target, random, isReset, sum } = given
  const jobs = Array.from({ length: REFILLS }, () => machines.startRefill({ pool, target }))
  const reset = isReset ? resetConnectionsAfter(machines, random.int(REFILL_MS)) : Promise.resolve()
  try {
    await Promise.all(
      jobs.map(async (job) => {
        if (random.chance(0.7)) {
          const afterMs = random.int(REFILL_MS)
          await Promise.race([sleep(afterMs), job.exited])
          job.kill()
        }
        const exited = withinDeadline('a refill', job.exited, JOB_MS_MAX)
        const { exitStatus, stderr, stdout } = await exited.catch((error: unknown) => {
          throw new Error(`a refill of ${String(target)} logged: ${job.output()}`, { cause: error })
        })
        if (exitStatus === 'SIGKILL') sum.killed++
        else if (exitStatus === 0) sum.completed++
        else throw new Error(`a refill exited with ${String(exitStatus)}: ${stderr}${stdout}`)
      }),
    )
  } finally {
    for (const job of jobs) job.kill()
    await reset
  }
}

async function resetConnectionsAfter({ cassandra }: ManyMachines, afterMs: number): Promise<void> {
  await sleep(afterMs)
  cassandra.nodes.forEach((_, at) => {
    cassandra.proxy(at).resetConnections()
  })
}

/** Reads the level of a pool during concurrent refills and claims. */
export function watchPoolLevels(given: {
  machines: ManyMachines
  rounds: number
  seed: number
}): Promise<PoolLevels> {
  const { machines, rounds, seed } = given
  return watchLevels({ machines, pool: newPool('levels'), rounds, random: createRandom(seed) })
}

/** Resets every connection of a running refill once: it still fills the pool and completes. */
export async function disconnectRefill(machines: ManyMachines): Promise<string> {
  const job = machines.startRefill({ pool: newPool('reset'), target: 100 * BLOCK })
  await waitFor('the first blocks', () => job.output().includes('"minted"'), JOB_MS_MAX)
  await resetConnectionsAfter(machines, 0)
  return job.succeeded(COMPLETE_MS_MAX)
}

/** The pool as stored. Throws if its level counts a block that does not exist. */
async function readPool({ cassandra }: ManyMachines, pool: string) {
  const rows = await readPoolRows(cassandra, pool)
  if (rows === undefined) return { minted: 0, claimed: 0, codes: [] }
  if (rows.absent.length > 0) throw new Error(`${pool} lacks the blocks ${rows.absent.join()}`)
  return rows
}

/** A refill with another secret reports that and changes nothing. */
export async function rejectOtherSecret(machines: ManyMachines): Promise<string> {
  const pool = newPool('secret')
  await machines.startRefill({ pool, target: BLOCK }).succeeded(JOB_MS_MAX)
  const secretFile = await machines.createSecret()
  const job = machines.startRefill({ pool, target: 3 * BLOCK, secretFile })
  const { exitStatus, stderr } = await withinDeadline('the rejection', job.exited, JOB_MS_MAX)
  const { minted } = await readPool(machines, pool)
  const isRejected = exitStatus === 3 && stderr.includes('a different code secret') && minted === 1
  if (isRejected) return stderr.trim()
  throw new Error(`another secret: ${String(exitStatus)}, ${String(minted)} blocks, ${stderr}`)
}

/** The result of killing create pods. */
export interface KilledCreatePods {
  readonly kills: number
  readonly created: number
  /** The most codes of claimed blocks that one killed process lost. */
  readonly lostMax: number
}

/** A process may lose the codes that it holds, of one claim in flight, of requests in flight. */
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
    const created = await createUntilKilled(machine, 1 + random.int(CREATES_MAX))
    codes.push(...created)
    const { claimed } = await readPool(machines, pool)
    const lost = (claimed - claimedBefore) * BLOCK - created.length
    if (lost > LOST_MAX) throw new Error(`create pod ${String(kill)} lost ${String(lost)} codes`)
    claimedBefore = claimed
    lostMax = Math.max(lostMax, lost)
  }
  expectDistinct(codes)
  return { kills, created: codes.length, lostMax }
}

async function createUntilKilled(machine: Machine, createdMin: number): Promise<string[]> {
  const httpClient = openHttpClient(machine.port)
  const codes: string[] = []
  const work = async () => {
    for (;;) {
      const request = createLinkRequest({ long_url: targetOf('killed') })
      const response = await httpClient.send(request).catch(() => undefined) // it was killed
      if (response === undefined) return
      codes.push(codeOf(response))
    }
  }
  const working = Promise.all(Array.from({ length: FLIGHT }, work))
  const isLoaded = () => codes.length >= createdMin
  await Promise.race([waitFor('codes before the kill', isLoaded, JOB_MS_MAX), working])
  machine.child.kill('SIGKILL')
  await machine.exited
  await working
  httpClient.close()
  return codes
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
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
