// Many clients send the same create at the same moment. For one alias, exactly one create wins, all
// others are rejected with 409, and the link is the winner's. With one Idempotency-Key, exactly one
// response is a fresh 201 and all others are its replays, also when several processes contend for
// the rows of three Cassandra nodes.
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { problemOf } from '../kit/http/machine-clients.ts'
import { type ManyMachines, startManyMachines } from '../kit/processes/many-machines.ts'
import { createRandom } from '../kit/random.ts'
import {
  type RawResponse,
  headerOf,
  openConnection,
  type RawConnection,
  requestBytes,
} from '../kit/http/raw-http.ts'
import { startStandalone } from '../kit/processes/standalone.ts'

const CLIENTS = 64
const FULL_ROUNDS = 200
/** Concurrent clients with one key; the rounds take these sizes in turn. */
const KEY_CLIENTS = [2, 3, 8, 16, 32]
const KEY_CLIENTS_MAX = Math.max(...KEY_CLIENTS)

/** The result of the rounds. */
export interface AliasRaces {
  readonly rounds: number
  readonly created: number
  readonly rejected: number
}

/** Runs `rounds` rounds on the service at `port`. Throws on the first violation. */
export async function raceForAliases(given: {
  port: number
  rounds: number
  seed: number
}): Promise<AliasRaces> {
  const random = createRandom(given.seed)
  const connections = await Promise.all(
    Array.from({ length: CLIENTS }, () => openConnection(given.port)),
  )
  const sum = { rounds: given.rounds, created: 0, rejected: 0 }
  try {
    for (let round = 0; round < given.rounds; round++) {
      const alias = `${random.int(36 ** 6).toString(36)}-${round.toString(36)}`.slice(-10)
      const { created, rejected } = await runRound(connections, alias)
      sum.created += created
      sum.rejected += rejected
    }
  } finally {
    for (const connection of connections) connection.close()
  }
  return sum
}

async function runRound(connections: readonly RawConnection[], alias: string) {
  const targetOf = (i: number) => `https://example.com/${alias}/${String(i)}`
  const requests = connections.map((_, i) =>
    requestBytes(createLinkRequest({ long_url: targetOf(i), custom_alias: alias })),
  )
  // All requests are sent before the first response is read.
  requests.forEach((bytes, i) => connections[i]?.send(bytes))
  const responses = await Promise.all(connections.map((connection) => connection.nextResponse()))
  const winners = responses.flatMap((response, i) => (response.status === 201 ? [i] : []))
  const rejected = responses.filter(({ status }) => status === 409).length
  if (winners.length !== 1 || rejected !== responses.length - 1) {
    throw new Error(`${alias}: ${statusesOf(responses)}`)
  }
  const winner = winners[0] ?? 0
  const winning = responses[winner]
  if (winning === undefined || codeOf(winning) !== alias)
    throw new Error(`${alias}: another short_url`)
  for (const connection of [connections[winner], connections.at(-1)]) {
    const response = await connection?.exchange({ path: `/${alias}` })
    const location = response === undefined ? undefined : headerOf(response, 'Location')
    if (location !== targetOf(winner)) {
      throw new Error(`${alias}: client ${String(winner)} won, but it is ${String(location)}`)
    }
  }
  return { created: winners.length, rejected }
}

function statusesOf(responses: readonly RawResponse[]): string {
  const counts = new Map<number, number>()
  for (const { status } of responses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return JSON.stringify(Object.fromEntries(counts))
}

/** The result of the rounds with one key. */
export interface KeyRaces {
  readonly rounds: number
  readonly fresh: number
  readonly replayed: number
  /** The longest response time. */
  readonly msMax: number
}

/** Runs `rounds` rounds on the `create` processes. Throws on the first violation. */
export async function raceForKeys(given: {
  machines: Pick<ManyMachines, 'creates'>
  rounds: number
  seed: number
}): Promise<KeyRaces> {
  const { creates } = given.machines
  const random = createRandom(given.seed)
  const ports = creates.map(({ port }) => port)
  const connections = await Promise.all(
    Array.from({ length: KEY_CLIENTS_MAX }, (_, i) => openConnection(ports[i % ports.length] ?? 0)),
  )
  const sum = { rounds: given.rounds, fresh: 0, replayed: 0, msMax: 0 }
  try {
    for (let round = 0; round < given.rounds; round++) {
      const name = `${random.int(36 ** 5).toString(36)}-${round.toString(36)}`
      const clients = KEY_CLIENTS[round % KEY_CLIENTS.length] ?? 0
      const alias = random.chance(0.3) ? { custom_alias: name } : {}
      const body = { long_url: `https://example.com/${name}`, ...alias }
      const { replayed, ms } = await runKeyRound(connections.slice(0, clients), { name, body })
      sum.fresh++
      sum.replayed += replayed
      sum.msMax = Math.max(sum.msMax, Math.round(ms))
    }
  } finally {
    for (const connection of connections) connection.close()
  }
  return sum
}

async function runKeyRound(
  connections: readonly RawConnection[],
  { name, body }: { name: string; body: object },
): Promise<{ replayed: number; ms: number }> {
  const bytes = requestBytes(createLinkRequest(body, { 'Idempotency-Key': name }))
  const sentMs = performance.now()
  for (const connection of connections) connection.send(bytes)
  const responses = await Promise.all(connections.map((connection) => connection.nextResponse()))
  const ms = performance.now() - sentMs
  const failed = responses.find(({ status }) => status !== 201)
  if (failed !== undefined) {
    throw new Error(
      `${name}: ${statusesOf(responses)} ${problemOf(failed)} after ${ms.toFixed(0)} ms`,
    )
  }
  const codes = new Set(responses.map(codeOf))
  const replays = responses.filter(
    (response) => headerOf(response, 'Idempotency-Replayed') === 'true',
  )
  if (codes.size !== 1 || replays.length !== responses.length - 1) {
    throw new Error(
      `${name}: ${codes.size} codes, ${replays.length} replays of ${responses.length}`,
    )
  }
  return { replayed: replays.length, ms }
}

/** Runs the test at full size. */
export async function run(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const service = await startStandalone()
  try {
    const sum = await raceForAliases({ port: service.port, rounds: FULL_ROUNDS, seed: given.seed })
    given.log(
      `${sum.rounds} rounds of ${CLIENTS} clients: ${sum.created} × 201, ${sum.rejected} × 409`,
    )
  } finally {
    await service.stop()
  }
  const machines = await startManyMachines({ codes: 10_000 })
  try {
    const sum = await raceForKeys({ machines, rounds: FULL_ROUNDS, seed: given.seed })
    given.log(
      `${sum.rounds} rounds of one key, three nodes, ${KEY_CLIENTS.join(', ')} clients in turn: ` +
        `${sum.fresh} fresh 201, ${sum.replayed} replays, at most ${sum.msMax} ms`,
    )
  } finally {
    await machines.stop()
  }
}
