// `kill -9` at random moments under 64 creates in flight: every link whose 201 was sent exists
// after the restart, a retry with the same key returns the same link, and no code is issued twice.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { createRandom, type Random } from '../kit/random.ts'
import {
  type RawRequest,
  headerOf,
  openConnection,
  type RawConnection,
} from '../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../kit/processes/standalone.ts'

const CLIENTS = 64
const CHECKERS = 16
const FULL_ROUNDS = 40
const KILL_AFTER_MS_MAX = 1500
/** A start takes about this long; some are killed within it. */
const START_MS = 600

/** A request to create a link, and the code in its 201; undefined without a response. */
interface Sent {
  readonly request: RawRequest
  readonly target: string
  readonly hasKey: boolean
  code?: string
}

/** The result of the rounds. */
export interface Kills {
  kills: number
  killedStarts: number
  acknowledged: number
  unacknowledged: number
  checked: number
}

/** Runs `rounds` rounds on a new database. Throws on the first violation. */
export async function killRounds(given: {
  rounds: number
  seed: number
  log: (line: string) => void
}): Promise<Kills> {
  const random = createRandom(given.seed)
  const dataDir = await mkdtemp(join(tmpdir(), 'curtail-kill-'))
  const sum: Kills = { kills: 0, killedStarts: 0, acknowledged: 0, unacknowledged: 0, checked: 0 }
  const codes = new Set<string>()
  let sent: Sent[] = []
  try {
    for (let round = 0; round <= given.rounds; round++) {
      if (random.chance(0.25)) sum.killedStarts += await killStart(dataDir, random)
      const service = await startStandalone({ dataDir })
      sum.checked += await checkAll(service, sent)
      if (round === given.rounds) {
        await service.stop()
        break
      }
      sent = await killUnderLoad(service, { random, round })
      sum.kills++
      const acknowledged = sent.flatMap(({ code }) => (code === undefined ? [] : [code]))
      for (const code of acknowledged) {
        if (codes.has(code)) throw new Error(`the code ${code} was issued twice`)
        codes.add(code)
      }
      sum.acknowledged += acknowledged.length
      const unacknowledged = sent.length - acknowledged.length
      sum.unacknowledged += unacknowledged
      given.log(`round ${round + 1}: ${acknowledged.length} × 201, ${unacknowledged} in flight`)
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
  return sum
}

/** Kills a process while it starts; 1 if it was not ready before. */
async function killStart(dataDir: string, random: Random): Promise<number> {
  const afterMs = random.int(START_MS)
  const starting = startStandalone({
    dataDir,
    onSpawn(child) {
      setTimeout(() => child.kill('SIGKILL'), afterMs)
    },
  })
  return starting.then(
    async (service) => {
      await service.exited
      return 0
    },
    () => 1,
  )
}

async function killUnderLoad(
  service: Standalone,
  { random, round }: { random: Random; round: number },
): Promise<Sent[]> {
  const sent: Sent[] = []
  const connections = await Promise.all(
    Array.from({ length: CLIENTS }, () => openConnection(service.port)),
  )
  const working = connections.map((connection, client) =>
    createUntilClosed(connection, { sent, name: `${String(round)}-${String(client)}`, random }),
  )
  await sleep(random.int(KILL_AFTER_MS_MAX))
  service.child.kill('SIGKILL')
  await service.exited
  await Promise.all(working)
  return sent
}

/** Creates links one after another until the connection closes. */
async function createUntilClosed(
  connection: RawConnection,
  given: { sent: Sent[]; name: string; random: Random },
): Promise<void> {
  for (let i = 0; ; i++) {
    const name = `${given.name}-${String(i)}`
    const target = `https://example.com/${name}?q=%7e`
    const hasKey = given.random.chance(0.5)
    const body = { long_url: target, ...(given.random.chance(0.3) && { ttl_days: 1 }) }
    const request = createLinkRequest(body, hasKey ? { 'Idempotency-Key': name } : {})
    const entry: Sent = { request, target, hasKey }
    given.sent.push(entry)
    try {
      entry.code = codeOf(await connection.exchange(request))
    } catch (error) {
      if (String(error).includes('no link was created')) throw error
      connection.close()
      return
    }
  }
}

/** Checks the link of every request of the previous round; returns the number of checks. */
async function checkAll(service: Standalone, sent: readonly Sent[]): Promise<number> {
  const left = [...sent]
  const checker = async () => {
    const connection = await openConnection(service.port)
    for (let entry = left.pop(); entry !== undefined; entry = left.pop())
      await check(connection, entry)
    connection.close()
  }
  await Promise.all(Array.from({ length: CHECKERS }, checker))
  return sent.length
}

async function check(
  connection: RawConnection,
  { request, target, hasKey, code }: Sent,
): Promise<void> {
  if (code !== undefined) await expectRedirect(connection, { code, target })
  if (!hasKey) return
  const retry = await connection.exchange(request)
  const currentCode = codeOf(retry)
  if (code !== undefined && currentCode !== code)
    throw new Error(`${code} is ${currentCode} by its key`)
  if (code !== undefined && headerOf(retry, 'Idempotency-Replayed') !== 'true') {
    throw new Error(`${code} was created twice with its key`)
  }
  await expectRedirect(connection, { code: currentCode, target })
}

async function expectRedirect(
  connection: RawConnection,
  { code, target }: { code: string; target: string },
): Promise<void> {
  const response = await connection.exchange({ path: `/${code}` })
  const location = headerOf(response, 'Location')
  if (response.status === 302 && location === target) return
  throw new Error(`${code} was created for ${target}: now ${response.status} ${String(location)}`)
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const sum = await killRounds({ ...given, rounds: FULL_ROUNDS })
  given.log(
    `${sum.kills} kills under load, ${sum.killedStarts} while starting: ` +
      `${sum.acknowledged} links acknowledged and none lost, ` +
      `${sum.unacknowledged} requests without a response`,
  )
}
