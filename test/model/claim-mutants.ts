// The mutants of the claim protocol: each removes one clause and thereby violates an invariant.
import { StoreError } from '../../src/resilience/store-error.ts'
import type { CreateDeps } from '../../src/create/create-link.ts'
import type { ClaimSetup } from './claim-model.ts'
import { keyed, keyless, type NamedClaim, otherBody } from './claim-scenarios.ts'

/** A mutant, and the invariant that it violates. */
export interface ClaimMutant extends NamedClaim {
  readonly breaks: string
}

type Mutate = NonNullable<ClaimSetup['mutate']>

const mutateLinks =
  (
    change: (deps: CreateDeps, own: Parameters<Mutate>[1]) => Partial<CreateDeps['links']>,
  ): Mutate =>
  (deps, own) => ({ ...deps, links: { ...deps.links, ...change(deps, own) } })

/** A claim is won only if this call applied it; the writer is not compared. */
const trustAppliedOnly = mutateLinks((_, { perform }) => ({
  async insertIfAbsent({ code, writerId, longUrl, expiresAtMs }) {
    const claim = ['claim', code, writerId, longUrl, expiresAtMs] as const
    const [winner, applied] = (await perform('write', claim)) as [string, boolean]
    return applied ? winner : 'another writer'
  },
}))

/** A request that finds the intent of another one responds from it, without a claim. */
const respondFromIntent = mutateLinks((deps, { client }) => ({
  insertIfAbsent: (link) =>
    link.writerId.startsWith(`${client.name}.`)
      ? deps.links.insertIfAbsent(link)
      : Promise.resolve(link.writerId),
}))

/** A code whose claim has an unknown outcome counts as taken if a read does not find it. */
const abandonUnknownClaim = mutateLinks((deps) => ({
  async readSerial(code) {
    const row = await deps.links.readSerial(code)
    const noWriter = { code, longUrl: null, createdAtMs: 0, expiresAtMs: null, creatorId: null }
    return row ?? { ...noWriter, writerId: 'none', disabledAtMs: null, deletedAtMs: null }
  },
}))

/** A claim that timed out counts as not done. */
const treatUnknownAsNotDone = mutateLinks((deps) => ({
  insertIfAbsent: (link) =>
    deps.links.insertIfAbsent(link).catch((cause: unknown) => {
      throw new StoreError('timed out', { outcome: 'not-done', cause })
    }),
}))

/** Each request takes its own next code, without moving the intent. */
const moveNothing: Mutate = (deps) => ({
  ...deps,
  intents: { ...deps.intents, move: ({ intent, to }) => Promise.resolve({ ...intent, code: to }) },
})

/** A code is taken before the intent is read. */
const readIntentLast: Mutate = (deps) => ({
  ...deps,
  intents: { ...deps.intents, readSerial: () => Promise.resolve(undefined) },
})

/** A failed read of the intent, as under contention, fails the request. */
const failOnFailedRead: Mutate = (deps) => ({
  ...deps,
  intents: {
    ...deps.intents,
    readSerial: (keyHash) =>
      deps.intents.readSerial(keyHash).catch((cause: unknown) => {
        throw new StoreError('contended', { outcome: 'not-done', cause })
      }),
  },
})

/** The body is not compared with the body of the intent. */
const ignoreBody: Mutate = (deps) => {
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

/** One mutant for each clause of the protocol. */
export const claimMutants: readonly ClaimMutant[] = [
  {
    name: 'won = applied just now; the writer of the record is not compared',
    setup: { clients: [keyless(1, 'a')], mutate: trustAppliedOnly },
    timeouts: 1,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'a request that finds an intent responds without claiming its code',
    setup: { clients: [keyed(1), keyed(2)], mutate: respondFromIntent },
    timeouts: 0,
    crashes: 0,
    breaks: '201 without a row of its own',
  },
  {
    name: 'an unknown claim of a generated code is abandoned for another code',
    setup: { clients: [keyed(1), keyed(2)], mutate: abandonUnknownClaim },
    timeouts: 1,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'an unknown claim of an alias counts as lost',
    setup: { clients: [keyless(1, 'a')], mutate: abandonUnknownClaim },
    timeouts: 1,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'an unknown claim counts as not done',
    setup: { clients: [keyless(1), keyless(2)], mutate: treatUnknownAsNotDone },
    timeouts: 1,
    crashes: 1,
    breaks: 'not-created, and a link was stored',
  },
  {
    name: 'an unknown claim counts as not done, with a key',
    setup: { clients: [keyed(1)], mutate: treatUnknownAsNotDone },
    timeouts: 2,
    crashes: 0,
    breaks: 'not-created, and a link was stored',
  },
  {
    name: 'the next code is taken without moving the intent',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')], mutate: moveNothing },
    timeouts: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'the intent is moved without comparing',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')], moveWithoutComparing: true },
    timeouts: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'a code is taken before the intent is read',
    setup: { clients: [keyed(1), keyed(2)], codes: ['g1'], mutate: readIntentLast },
    timeouts: 0,
    crashes: 0,
    breaks: 'a retry after a 201 was rejected',
  },
  {
    name: 'a read of the intent that fails is not retried',
    setup: { clients: [keyed(1), keyed(2)], mutate: failOnFailedRead },
    timeouts: 1,
    crashes: 0,
    breaks: '503 after one fault',
  },
  {
    name: 'the body is not compared',
    setup: { clients: [keyed(1, 'a'), otherBody(2, 'a')], mutate: ignoreBody },
    timeouts: 0,
    crashes: 0,
    breaks: 'two bodies for one key',
  },
  {
    name: 'deletion erases the writer',
    setup: {
      clients: [keyed(1, 'a'), keyed(2, 'a')],
      erasures: 1,
      erasureClearsWriter: true,
    },
    timeouts: 0,
    crashes: 0,
    breaks: '409 to the winner',
  },
  {
    name: 'the intent expires while a retry is possible: generated',
    setup: { clients: [keyed(1), keyed(2)], expiries: 1 },
    timeouts: 0,
    crashes: 0,
    breaks: 'two links for one key',
  },
  {
    name: 'the intent expires while a retry is possible: alias',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a')], expiries: 1 },
    timeouts: 0,
    crashes: 0,
    breaks: '409 to the winner',
  },
]
