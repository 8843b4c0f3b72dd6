// Scenarios of create requests and faults in which every invariant must hold. claim.test.ts runs
// the small ones, test/soak/models.ts runs all.
import type { ClaimSetup } from './claim-model.ts'
import type { Client } from './claim-state.ts'

/** A scenario with its name. */
export interface NamedClaim {
  readonly name: string
  readonly setup: ClaimSetup
  readonly timeouts: number
  readonly crashes: number
}

/** A request with the key. */
export const keyed = (number: number, alias?: string): Client => ({
  name: `K${String(number)}`,
  key: 'key',
  body: 'https://x.example/',
  ...(alias !== undefined && { alias }),
})
/** A request with the same key and another body. */
export const otherBody = (number: number, alias?: string): Client => ({
  ...keyed(number, alias),
  body: 'https://z.example/',
})
/** Another client's request, without a key. */
export const keyless = (number: number, alias?: string): Client => ({
  name: `N${String(number)}`,
  body: 'https://y.example/',
  ...(alias !== undefined && { alias }),
})

/** Scenarios that are small enough for the unit tests. */
export const claimScenarios: readonly NamedClaim[] = [
  {
    name: 'an alias, two clients',
    setup: { clients: [keyless(1, 'a'), keyless(2, 'a')] },
    timeouts: 2,
    crashes: 1,
  },
  {
    name: 'an alias, three clients',
    setup: { clients: [keyless(1, 'a'), keyless(2, 'a'), keyless(3, 'a')] },
    timeouts: 1,
    crashes: 1,
  },
  {
    name: 'an alias, two requests with a key and another client',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a'), keyless(1, 'a')] },
    timeouts: 2,
    crashes: 1,
  },
  {
    name: 'an alias, three requests with a key, an operator deletes',
    setup: { clients: [keyed(1, 'a'), keyed(2, 'a'), keyed(3, 'a')], erasures: 1 },
    timeouts: 1,
    crashes: 1,
  },
  {
    name: 'generated, two clients',
    setup: { clients: [keyless(1), keyless(2)], codes: ['g1', 'g2', 'g3'] },
    timeouts: 2,
    crashes: 1,
  },
  {
    name: 'generated, two requests with a key',
    setup: { clients: [keyed(1), keyed(2)] },
    timeouts: 2,
    crashes: 2,
  },
  {
    name: 'generated, two requests with a key, an operator deletes',
    setup: { clients: [keyed(1), keyed(2)], erasures: 1 },
    timeouts: 1,
    crashes: 1,
  },
  {
    name: 'generated, three requests with a key',
    setup: { clients: [keyed(1), keyed(2), keyed(3)] },
    timeouts: 1,
    crashes: 0,
  },
  {
    name: 'generated, two requests with a key, an alias takes the code',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1')] },
    timeouts: 1,
    crashes: 0,
  },
  {
    name: 'generated, one request with a key, an alias takes the code',
    setup: { clients: [keyed(1), keyless(1, 'g1')] },
    timeouts: 2,
    crashes: 1,
  },
  {
    name: 'one key, two bodies',
    setup: { clients: [keyed(1), otherBody(2)] },
    timeouts: 2,
    crashes: 1,
  },
  {
    name: 'one key, two bodies, one with an alias, and a retry',
    setup: { clients: [keyed(1), otherBody(2, 'a'), keyed(3)] },
    timeouts: 1,
    crashes: 0,
  },
  {
    name: 'generated, two requests with a key, one code in the pool',
    setup: { clients: [keyed(1), keyed(2)], codes: ['g1'] },
    timeouts: 1,
    crashes: 1,
  },
]

/** Larger scenarios, for the fault tests. */
export const largeClaimScenarios: readonly NamedClaim[] = [
  ...claimScenarios.map((one) => ({ ...one, timeouts: 2, crashes: 1 })),
  {
    name: 'generated, two requests with a key, aliases take two codes',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1'), keyless(2, 'g2')] },
    timeouts: 1,
    crashes: 0,
  },
]

/** Scenarios with too many requests to explore every interleaving: random walks. */
export const walkedClaimScenarios: readonly NamedClaim[] = [
  {
    name: 'five requests with a key, two aliases, an operator',
    setup: {
      clients: [1, 2, 3, 4, 5].map((n) => keyed(n)).concat(keyless(1, 'g1'), keyless(2, 'g2')),
      codes: ['g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7', 'g8', 'g9'],
      erasures: 1,
    },
    timeouts: 4,
    crashes: 3,
  },
  {
    name: 'one alias, three requests with a key, three others',
    setup: {
      clients: [keyed(1, 'a'), keyed(2, 'a'), keyed(3, 'a')].concat(
        [1, 2, 3].map((n) => keyless(n, 'a')),
      ),
    },
    timeouts: 4,
    crashes: 3,
  },
]
