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

/** One request to create a link, and the code that its 201 told; none where no answer came. */
interface Sent {
  readonly ask: RawRequest
  readonly target: string
  readonly hasKey: boolean
  code?: string
}

/** What the rounds gave. */
export interface Kills {
  kills: number
  killedStarts: number
  acknowledged: number
  unanswered: number
  checked: number
}

/** Runs so many rounds on a database of its own. Throws what it found. */
export async function killRounds(given: {
  rounds: number
  seed: number
  log: (line: string) => void
}): Promise<Kills> {
  const random = createRandom(given.seed)
  const dataDir = await mkdtemp(join(tmpdir(), 'curtail-kill-'))
  const sum: Kills = { kills: 0, killedStarts: 0, acknowledged: 0, unanswered: 0, checked: 0 }
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
      const told = sent.flatMap(({ code }) => (code === undefined ? [] : [code]))
      for (const code of told) {
        if (codes.has(code)) throw new Error(`the code ${code} was issued twice`)
        codes.add(code)
      }
      sum.acknowledged += told.length
      sum.unanswered += sent.length - told.length
      given.log(`round ${round + 1}: ${told.length} told, ${sent.length - told.length} in flight`)
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
  return sum
}

/** Kills a process while it starts; 1 if it had not become ready before. */
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
    createWithoutEnd(connection, { sent, name: `${String(round)}-${String(client)}`, random }),
  )
  await sleep(random.int(KILL_AFTER_MS_MAX))
  service.child.kill('SIGKILL')
  await service.exited
  await Promise.all(working)
  return sent
}

/** Creates links one after another until the connection breaks. */
async function createWithoutEnd(
  connection: RawConnection,
  given: { sent: Sent[]; name: string; random: Random },
): Promise<void> {
  for (let i = 0; ; i++) {
    const name = `${given.name}-${String(i)}`
    const target = `https://example.com/${name}?q=%7e`
    const hasKey = given.random.chance(0.5)
    const body = { long_url: target, ...(given.random.chance(0.3) && { ttl_days: 1 }) }
    const ask = createLinkRequest(body, hasKey ? { 'Idempotency-Key': name } : {})
    const one: Sent = { ask, target, hasKey }
    given.sent.push(one)
    try {
      one.code = codeOf(await connection.exchange(ask))
    } catch (error) {
      if (String(error).includes('no link was created')) throw error
      connection.close()
      return
    }
  }
}

/** Holds every request of the round before against what is there now; how many were checked. */
async function checkAll(service: Standalone, sent: readonly Sent[]): Promise<number> {
  const left = [...sent]
  const checker = async () => {
    const connection = await openConnection(service.port)
    for (let one = left.pop(); one !== undefined; one = left.pop()) await check(connection, one)
    connection.close()
  }
  await Promise.all(Array.from({ length: CHECKERS }, checker))
  return sent.length
}

async function check(
  connection: RawConnection,
  { ask, target, hasKey, code }: Sent,
): Promise<void> {
  if (code !== undefined) await expectRedirect(connection, { code, target })
  if (!hasKey) return
  const again = await connection.exchange(ask)
  const codeNow = codeOf(again)
  if (code !== undefined && codeNow !== code) throw new Error(`${code} is ${codeNow} by its key`)
  if (code !== undefined && headerOf(again, 'Idempotency-Replayed') !== 'true') {
    throw new Error(`${code} was created twice with its key`)
  }
  await expectRedirect(connection, { code: codeNow, target })
}

async function expectRedirect(
  connection: RawConnection,
  { code, target }: { code: string; target: string },
): Promise<void> {
  const answer = await connection.exchange({ path: `/${code}` })
  const location = headerOf(answer, 'Location')
  if (answer.status === 302 && location === target) return
  throw new Error(`${code} was told for ${target}: now ${answer.status} ${String(location)}`)
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const sum = await killRounds({ ...given, rounds: FULL_ROUNDS })
  given.log(
    `${sum.kills} kills under load, ${sum.killedStarts} while starting: ` +
      `${sum.acknowledged} links told and none lost, ${sum.unanswered} requests without an answer`,
  )
}
