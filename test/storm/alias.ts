// Many clients want one alias at the same moment: exactly one gets it, all others are told 409, and
// the link is the winner's.
import { codeOf, createAsk } from '../component/client.ts'
import { createRandom } from '../component/random.ts'
import {
  type Answer,
  headerOf,
  openConnection,
  type RawConnection,
  requestBytes,
} from '../component/raw-http.ts'
import { startStandalone } from '../component/standalone.ts'

const CLIENTS = 64
const STORM_ROUNDS = 200

/** What the rounds gave. */
export interface AliasRaces {
  readonly rounds: number
  readonly created: number
  readonly refused: number
}

/** Runs so many rounds on the service at `port`. Throws what it found. */
export async function raceForAliases(given: {
  port: number
  rounds: number
  seed: number
}): Promise<AliasRaces> {
  const random = createRandom(given.seed)
  const connections = await Promise.all(
    Array.from({ length: CLIENTS }, () => openConnection(given.port)),
  )
  const sum = { rounds: given.rounds, created: 0, refused: 0 }
  try {
    for (let round = 0; round < given.rounds; round++) {
      const alias = `${random.int(36 ** 6).toString(36)}-${round.toString(36)}`.slice(-10)
      const { created, refused } = await runRound(connections, alias)
      sum.created += created
      sum.refused += refused
    }
  } finally {
    for (const connection of connections) connection.close()
  }
  return sum
}

async function runRound(connections: readonly RawConnection[], alias: string) {
  const targetOf = (i: number) => `https://example.com/${alias}/${String(i)}`
  const requests = connections.map((_, i) =>
    requestBytes(createAsk({ long_url: targetOf(i), custom_alias: alias })),
  )
  // All are written before the first answer is looked at.
  requests.forEach((bytes, i) => connections[i]?.send(bytes))
  const answers = await Promise.all(connections.map((connection) => connection.answer()))
  const winners = answers.flatMap((answer, i) => (answer.status === 201 ? [i] : []))
  const refused = answers.filter(({ status }) => status === 409).length
  if (winners.length !== 1 || refused !== answers.length - 1) {
    throw new Error(`${alias}: ${statusesOf(answers)}`)
  }
  const winner = winners[0] ?? 0
  const told = answers[winner]
  if (told === undefined || codeOf(told) !== alias) throw new Error(`${alias}: another short_url`)
  for (const connection of [connections[winner], connections.at(-1)]) {
    const answer = await connection?.exchange({ path: `/${alias}` })
    const location = answer === undefined ? undefined : headerOf(answer, 'Location')
    if (location !== targetOf(winner)) {
      throw new Error(`${alias}: client ${String(winner)} won, but it leads to ${String(location)}`)
    }
  }
  return { created: winners.length, refused }
}

function statusesOf(answers: readonly Answer[]): string {
  const counts = new Map<number, number>()
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  return JSON.stringify(Object.fromEntries(counts))
}

/** The full size. */
export async function storm(given: { seed: number; log: (line: string) => void }): Promise<void> {
  const service = await startStandalone()
  try {
    const sum = await raceForAliases({ port: service.port, rounds: STORM_ROUNDS, seed: given.seed })
    given.log(
      `${sum.rounds} rounds of ${CLIENTS} clients: ${sum.created} × 201, ${sum.refused} × 409`,
    )
  } finally {
    await service.stop()
  }
}
