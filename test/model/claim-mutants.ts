// Each clause of the claiming of codes taken away in turn: what must not hold, each with the
// promise that it breaks.
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CreateDeps } from '../../src/create/create-link.ts'
import type { ClaimSetup } from './claim-model.ts'
import { keyed, keyless, type NamedClaim, otherBody } from './claim-scenarios.ts'

/** A mutant, and the promise that breaks. */
export interface ClaimMutant extends NamedClaim {
  readonly breaks: string
}

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

/** A claim whose answer was lost counts as one that was not done. */
const callUnknownNotDone = bendLinks((deps) => ({
  insertIfAbsent: (link) =>
    deps.links.insertIfAbsent(link).catch((cause: unknown) => {
      throw new StoreError('lost', { outcome: 'not-done', cause })
    }),
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

/** A read of the intent that fails, as contention makes it fail, ends the request. */
const endAtFailedRead: Bend = (deps) => ({
  ...deps,
  intents: {
    ...deps.intents,
    readSerial: (keyHash) =>
      deps.intents.readSerial(keyHash).catch((cause: unknown) => {
        throw new StoreError('contended', { outcome: 'not-done', cause })
      }),
  },
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
    name: 'an unknown claim counts as not done',
    setup: { clients: [keyless(1), keyless(2)], bend: callUnknownNotDone },
    unknowns: 1,
    crashes: 1,
    breaks: 'store-unavailable, and a link was stored',
  },
  {
    name: 'an unknown claim counts as not done, with a key',
    setup: { clients: [keyed(1)], bend: callUnknownNotDone },
    unknowns: 2,
    crashes: 0,
    breaks: 'store-unavailable, and a link was stored',
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
    name: 'a read of the intent that fails is not retried',
    setup: { clients: [keyed(1), keyed(2)], bend: endAtFailedRead },
    unknowns: 1,
    crashes: 0,
    breaks: '503 after one fault',
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
