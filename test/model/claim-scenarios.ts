// Which requests meet which faults, and must hold. claim.test.ts runs the small ones,
// test/soak/models.ts all.
import type { ClaimSetup } from './claim-model.ts'
import type { Client } from './claim-state.ts'

/** A scenario by its name. */
export interface NamedClaim {
  readonly name: string
  readonly setup: ClaimSetup
  readonly unknowns: number
  readonly crashes: number
}

/** A request of the key. */
export const keyed = (number: number, alias?: string): Client => ({
  name: `K${String(number)}`,
  key: 'key',
  body: 'https://x.example/',
  ...(alias !== undefined && { alias }),
})
/** One of the same key for something else. */
export const otherBody = (number: number, alias?: string): Client => ({
  ...keyed(number, alias),
  body: 'https://z.example/',
})
/** One without a key, of another client. */
export const keyless = (number: number, alias?: string): Client => ({
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
    name: 'generated, one request of a key, an alias takes the code',
    setup: { clients: [keyed(1), keyless(1, 'g1')] },
    unknowns: 2,
    crashes: 1,
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

/** Larger scenarios, for the fault tests. */
export const largeClaimScenarios: readonly NamedClaim[] = [
  ...claimScenarios.map((one) => ({ ...one, unknowns: 2, crashes: 1 })),
  {
    name: 'generated, two requests of a key, aliases take two codes',
    setup: { clients: [keyed(1), keyed(2), keyless(1, 'g1'), keyless(2, 'g2')] },
    unknowns: 1,
    crashes: 0,
  },
]

/** Too many requests to explore every interleaving: walked at random. */
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
