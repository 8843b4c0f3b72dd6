// Which Jobs and pods meet which faults: the scenarios that must hold, and mutants that must not,
// each with the promise that it breaks. pool.test.ts runs the small ones, test/soak/models.ts all.
import type { ClaimBlockDeps } from '../../src/create/claim-block.ts'
import type { PoolSetup } from './pool-model.ts'

/** A scenario by its name. */
export interface NamedPool {
  readonly name: string
  readonly setup: PoolSetup
  readonly unknowns: number
  readonly crashes: number
}

/** A mutant, and the promise that breaks. */
export interface PoolMutant extends NamedPool {
  readonly breaks: string
}

/** Scenarios with the faults that the inner loop has time for. */
export const poolScenarios: readonly NamedPool[] = [
  { name: '2 Jobs, 1 pod, no fault', setup: { jobs: [2, 2], pods: [2] }, unknowns: 0, crashes: 0 },
  { name: '2 Jobs, 1 pod', setup: { jobs: [1, 1], pods: [1] }, unknowns: 2, crashes: 0 },
  { name: '2 Jobs, 1 pod, a crash', setup: { jobs: [1, 1], pods: [2] }, unknowns: 1, crashes: 1 },
  { name: '2 Jobs x 2 blocks, 1 pod', setup: { jobs: [2, 2], pods: [1] }, unknowns: 1, crashes: 0 },
  { name: '3 Jobs, 1 pod', setup: { jobs: [1, 1, 1], pods: [1] }, unknowns: 1, crashes: 0 },
  { name: '1 Job x 2, 2 pods', setup: { jobs: [2], pods: [1, 1] }, unknowns: 1, crashes: 1 },
  {
    name: '3 existing blocks, 2 pods x 2',
    setup: { jobs: [], pods: [2, 2], minted: 3 },
    unknowns: 1,
    crashes: 1,
  },
  {
    name: '2 existing blocks, 3 pods',
    setup: { jobs: [], pods: [1, 1, 1], minted: 2 },
    unknowns: 1,
    crashes: 0,
  },
]

/** Larger scenarios, for the fault tests. */
export const largePoolScenarios: readonly NamedPool[] = [
  ...poolScenarios.map((one) => ({ ...one, unknowns: 2, crashes: 1 })),
]

/** Too many processes to explore every interleaving: walked at random. */
export const walkedPoolScenarios: readonly NamedPool[] = [
  {
    name: '3 Jobs x 4 blocks, 3 pods x 3',
    setup: { jobs: [4, 4, 3], pods: [3, 3, 3] },
    unknowns: 5,
    crashes: 2,
  },
]

type BendPod = NonNullable<PoolSetup['bendPod']>

const bendCodes =
  (change: (deps: ClaimBlockDeps, name: string) => Partial<ClaimBlockDeps['codes']>): BendPod =>
  (deps, { name }) => ({ ...deps, codes: { ...deps.codes, ...change(deps, name) } })

/** The pod's own name is the writer, and whatever it claimed last counts as what it asks now. */
const compareWriterOnly: BendPod = (deps, { name }) => {
  let asked = 0
  return {
    ...deps,
    newWriterId: () => name,
    codes: {
      ...deps.codes,
      claimNext(change) {
        asked = change.from + 1
        return deps.codes.claimNext(change)
      },
      async readPoolSerial(pool) {
        const row = await deps.codes.readPoolSerial(pool)
        return row?.writerId === name && asked > 0 ? { ...row, claimed: asked } : row
      },
    },
  }
}

/** Whoever sees the number it asked for holds it for its own. */
const comparePositionOnly = bendCodes((deps) => ({
  claimNext: async (change) => ({
    ...(await deps.codes.claimNext(change)),
    writerId: change.writerId,
  }),
}))

/** The first read of the pool may be an old one: it says that nothing has been minted. */
const readStale = bendCodes((deps) => ({
  readPoolSerial: async (pool) => {
    const row = await deps.codes.readPoolSerial(pool)
    return row && { ...row, minted: 0 }
  },
}))

/** Mutants: each removes one clause of the protocol. */
export const poolMutants: readonly PoolMutant[] = [
  {
    name: 'the writer is the pod, and the position is not compared',
    setup: { jobs: [], pods: [2, 1], minted: 3, bendPod: compareWriterOnly },
    unknowns: 1,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'the position is compared, the writer is not',
    setup: { jobs: [], pods: [1, 1], minted: 2, bendPod: comparePositionOnly },
    unknowns: 0,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'the claim does not compare',
    setup: { jobs: [], pods: [2, 2], minted: 3, claimWithoutComparing: true },
    unknowns: 0,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'pool-empty from a read that is not serial',
    setup: { jobs: [], pods: [1], minted: 1, bendPod: readStale },
    unknowns: 0,
    crashes: 0,
    breaks: 'pool-empty although blocks are left',
  },
  {
    name: 'the counter is moved although a block may not have been written',
    setup: {
      jobs: [1],
      pods: [],
      bendJob: (deps) => ({
        ...deps,
        codes: {
          ...deps.codes,
          putBlock: (block) => deps.codes.putBlock(block).catch(() => undefined),
        },
      }),
    },
    unknowns: 1,
    crashes: 0,
    breaks: 'the level counts a block that is not there',
  },
  {
    name: 'the counter is moved before the blocks are written',
    setup: {
      jobs: [1],
      pods: [1],
      bendJob: (deps) => ({
        ...deps,
        codes: {
          ...deps.codes,
          putBlock(block) {
            void deps.codes.putBlock(block).catch(() => undefined)
            return Promise.resolve()
          },
        },
      }),
    },
    unknowns: 0,
    crashes: 0,
    breaks: 'the level counts a block that is not there',
  },
  {
    name: 'a block holds what its minter has next, not what its number says',
    setup: {
      jobs: [1, 1],
      pods: [1],
      bendJob: (deps) => {
        let next = 64_000
        const permutation = { range: () => [(next += 64_000)] }
        return { ...deps, permutation }
      },
    },
    unknowns: 1,
    crashes: 0,
    breaks: 'an issued code is in the pool',
  },
]
