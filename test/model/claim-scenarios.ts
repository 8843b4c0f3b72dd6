// Which requests meet which faults: the scenarios that must hold, and mutants that must not, each
// with the promise that it breaks. claim.test.ts runs the small ones, test/storm/models.ts all.
import type { CreateDeps } from '../../src/shorten/create-link.ts'
import type { ClaimSetup } from './claim-model.ts'
import type { Client } from './claim-state.ts'

/** A scenario by its name. */
export interface NamedClaim {
  readonly name: string
  readonly setup: ClaimSetup
  readonly unknowns: number
  readonly crashes: number
}

/** A mutant, and the promise that breaks. */
export interface ClaimMutant extends NamedClaim {
  readonly breaks: string
}

const keyed = (number: number, alias?: string): Client => ({
  name: `K${String(number)}`,
  key: 'key',
  body: 'https://x.example/',
  ...(alias !== undefined && { alias }),
})
const otherBody = (number: number, alias?: string): Client => ({
  ...keyed(number, alias),
  body: 'https://z.example/',
})
const keyless = (number: number, alias?: string): Client => ({
  name: `N${String(number)}`,
  body: 'https://y.example/',
  ...(alias !== undefined && { alias }),
})

/** Scenarios with the faults that the inner loop has time for. */
export const claimScenarios: readonly NamedClaim[] = [
  {
    name: 'an alias, two clients',
    setup: { clients: [keyless(1, 'a'), keyless(2, 'a')] },
    unknowns: 2,
    crashes: 1,
  },
  {
    name: 'an alias, three clients',
    setup: { clients: [keyless(1, 'a'), keyless(2, 'a'), keyless(3, 'a')] },
    unknowns: 1,
    crashes: 1,
  },
  {
    name: 'an alias, two requests of a key and another client',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a'), keyless(1, 'a')] },
    unknowns: 2,
    crashes: 1,
  },
  {
    name: 'an alias, three requests of a key, an operator deletes',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a'), keyed(3, 'a')], erasures: 1 },
    unknowns: 1,
    crashes: 1,
  },
  {
    name: 'generated, two clients',
    setup: { clients: [keyless(1), keyless(2)], codes: ['g1', 'g2', 'g3'] },
    unknowns: 2,
    crashes: 1,
  },
  {
    name: 'generated, two requests of a key',
    setup: { clients: [keyed(1), keyed(2)] },
    unknowns: 2,
    crashes: 2,
  },
  {
    name: 'generated, two requests of a key, an operator deletes',
    setup: { clients: [keyed(1), keyed(2)], erasures: 1 },
    unknowns: 1,
    crashes: 1,
  },
  {
    name: 'generated, three requests of a key',
    setup: { clients: [keyed(1), keyed(2), keyed(3)] },
    unknowns: 1,
    crashes: 0,
  },
  {
    name: 'generated, two requests of a key, an alias takes the code',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')] },
    unknowns: 1,
    crashes: 0,
  },
  {
    name: 'one key, two bodies',
    setup: { clients: [keyed(1), otherBody(2)] },
    unknowns: 2,
    crashes: 1,
  },
  {
    name: 'one key, two bodies, one with an alias, and a repeat',
    setup: { clients: [keyed(1), otherBody(2, 'a'), keyed(3)] },
    unknowns: 1,
    crashes: 0,
  },
  {
    name: 'generated, two requests of a key, one code in the pool',
    setup: { clients: [keyed(1), keyed(2)], codes: ['g1'] },
    unknowns: 1,
    crashes: 1,
  },
]

/** Larger ones, for the storm. */
export const largeClaimScenarios: readonly NamedClaim[] = [
  ...claimScenarios.map((one) => ({ ...one, unknowns: 2, crashes: 1 })),
  {
    name: 'generated, two requests of a key, aliases take two codes',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1'), keyless(2, 'g2')] },
    unknowns: 1,
    crashes: 0,
  },
]

/** Too many requests to see every interleaving: walked at random. */
export const walkedClaimScenarios: readonly NamedClaim[] = [
  {
    name: 'five requests of a key, two aliases, an operator',
    setup: {
      clients: [1, 2, 3, 4, 5].map((n) => keyed(n)).concat(keyless(1, 'g1'), keyless(2, 'g2')),
      codes: ['g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7', 'g8', 'g9'],
      erasures: 1,
    },
    unknowns: 4,
    crashes: 3,
  },
  {
    name: 'one alias, three requests of a key, three others',
    setup: {
      clients: [keyed(1, 'a'), keyed(2, 'a'), keyed(3, 'a')].concat(
        [1, 2, 3].map((n) => keyless(n, 'a')),
      ),
    },
    unknowns: 4,
    crashes: 3,
  },
]

type Bend = NonNullable<ClaimSetup['bend']>

const bendLinks =
  (change: (deps: CreateDeps, own: Parameters<Bend>[1]) => Partial<CreateDeps['links']>): Bend =>
  (deps, own) => ({ ...deps, links: { ...deps.links, ...change(deps, own) } })

/** Won is only what the store says it has just applied. */
const believeAppliedOnly = bendLinks((_, { ask }) => ({
  async insertIfAbsent({ code, writerId, longUrl, expiresAtMs }) {
    const claim = ['claim', code, writerId, longUrl, expiresAtMs] as const
    const [there, applied] = (await ask('write', claim)) as [string, boolean]
    return applied ? there : 'somebody'
  },
}))

/** Whoever finds an intent of another request answers from it, and claims nothing. */
const answerFromIntent = bendLinks((deps, { client }) => ({
  insertIfAbsent: (link) =>
    link.writerId.startsWith(`${client.name}.`)
      ? deps.links.insertIfAbsent(link)
      : Promise.resolve(link.writerId),
}))

/** A code whose claim is unknown, and seems not to be there, counts as taken: the next, please. */
const giveUnknownUp = bendLinks((deps) => ({
  async readSerial(code) {
    const seen = await deps.links.readSerial(code)
    const nobody = { code, longUrl: null, createdAtMs: 0, expiresAtMs: null, creatorId: null }
    return seen ?? { ...nobody, writerId: 'nobody', disabledAtMs: null, deletedAtMs: null }
  },
}))

/** Each request takes a next code of its own, and the intent is not moved to it. */
const moveNothing: Bend = (deps) => ({
  ...deps,
  intents: { ...deps.intents, move: ({ intent, to }) => Promise.resolve({ ...intent, code: to }) },
})

/** A code is taken before the intent is looked for. */
const readIntentLast: Bend = (deps) => ({
  ...deps,
  intents: { ...deps.intents, readSerial: () => Promise.resolve(undefined) },
})

/** The body is not compared with the one that the key belongs to. */
const ignoreBody: Bend = (deps) => {
  let own = ''
  return {
    ...deps,
    intents: {
      ...deps.intents,
      async insertIfAbsent(intent) {
        own = intent.bodyHash
        return { ...(await deps.intents.insertIfAbsent(intent)), bodyHash: own }
      },
    },
  }
}

/** Each clause of the protocol taken away in turn. */
export const claimMutants: readonly ClaimMutant[] = [
  {
    name: 'won = applied just now; the writer of the record is not compared',
    setup: { clients: [keyless(1, 'a')], bend: believeAppliedOnly },
    unknowns: 1,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'the finder of an intent answers without claiming its code',
    setup: { clients: [keyed(1), keyed(2)], bend: answerFromIntent },
    unknowns: 0,
    crashes: 0,
    breaks: '201 without a row of its own',
  },
  {
    name: 'an unknown claim of a generated code is given up for another code',
    setup: { clients: [keyed(1), keyed(2)], bend: giveUnknownUp },
    unknowns: 1,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'an unknown claim of an alias counts as lost',
    setup: { clients: [keyless(1, 'a')], bend: giveUnknownUp },
    unknowns: 1,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'the next code is taken without moving the intent',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')], bend: moveNothing },
    unknowns: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'the intent is moved without comparing',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')], moveWithoutComparing: true },
    unknowns: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'a code is taken before the intent is read',
    setup: { clients: [keyed(1), keyed(2)], codes: ['g1'], bend: readIntentLast },
    unknowns: 0,
    crashes: 0,
    breaks: 'a repeat after a 201 was refused',
  },
  {
    name: 'the body is not compared',
    setup: { clients: [keyed(1, 'a'), otherBody(2, 'a')], bend: ignoreBody },
    unknowns: 0,
    crashes: 0,
    breaks: 'two bodies for one key',
  },
  {
    name: 'deletion erases the writer',
    setup: {
      clients: [keyed(1, 'a'), keyed(2, 'a')],
      erasures: 1,
      erasureForgetsWriter: true,
    },
    unknowns: 0,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'the intent ends while a repeat is possible: generated',
    setup: { clients: [keyed(1), keyed(2)], expiries: 1 },
    unknowns: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'the intent ends while a repeat is possible: alias',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a')], expiries: 1 },
    unknowns: 0,
    crashes: 0,
    breaks: '409 to the winner',
  },
]
