// Scenarios of Jobs, pods and faults in which every invariant must hold, and mutants, each with the
// invariant that it violates. pool.test.ts runs the small ones, test/soak/models.ts runs all.
import type { ClaimBlockDeps } from '../../src/create/claim-block.ts'
import type { PoolSetup } from './pool-model.ts'

/** A scenario with its name. */
export interface NamedPool {
  readonly name: string
  readonly setup: PoolSetup
  readonly timeouts: number
  readonly crashes: number
}

/** A mutant, and the invariant that it violates. */
export interface PoolMutant extends NamedPool {
  readonly breaks: string
}

/** Scenarios that are small enough for the unit tests. */
export const poolScenarios: readonly NamedPool[] = [
  { name: '2 Jobs, 1 pod, no fault', setup: { jobs: [2, 2], pods: [2] }, timeouts: 0, crashes: 0 },
  { name: '2 Jobs, 1 pod', setup: { jobs: [1, 1], pods: [1] }, timeouts: 2, crashes: 0 },
  { name: '2 Jobs, 1 pod, a crash', setup: { jobs: [1, 1], pods: [2] }, timeouts: 1, crashes: 1 },
  { name: '2 Jobs x 2 blocks, 1 pod', setup: { jobs: [2, 2], pods: [1] }, timeouts: 1, crashes: 0 },
  { name: '3 Jobs, 1 pod', setup: { jobs: [1, 1, 1], pods: [1] }, timeouts: 1, crashes: 0 },
  { name: '1 Job x 2, 2 pods', setup: { jobs: [2], pods: [1, 1] }, timeouts: 1, crashes: 1 },
  {
    name: '3 existing blocks, 2 pods x 2',
    setup: { jobs: [], pods: [2, 2], minted: 3 },
    timeouts: 1,
    crashes: 1,
  },
  {
    name: '2 existing blocks, 3 pods',
    setup: { jobs: [], pods: [1, 1, 1], minted: 2 },
    timeouts: 1,
    crashes: 0,
  },
  {
    name: '2 restored blocks, 3 lost: raised twice, 1 Job, 1 pod',
    setup: { jobs: [1], pods: [1], minted: 2, operators: [4, 3], lost: 3 },
    timeouts: 1,
    crashes: 1,
  },
  {
    name: '3 existing blocks, a raise while 1 Job and 1 pod run',
    setup: { jobs: [2], pods: [2], minted: 3, operators: [2] },
    timeouts: 1,
    crashes: 0,
  },
]

/** Larger scenarios, for the fault tests. */
export const largePoolScenarios: readonly NamedPool[] = [
  ...poolScenarios.map((one) => ({ ...one, timeouts: 2, crashes: 1 })),
]

/** Scenarios with too many processes to explore every interleaving: random walks. */
export const walkedPoolScenarios: readonly NamedPool[] = [
  {
    name: '3 Jobs x 4 blocks, 3 pods x 3',
    setup: { jobs: [4, 4, 3], pods: [3, 3, 3] },
    timeouts: 5,
    crashes: 2,
  },
]

type MutatePod = NonNullable<PoolSetup['mutatePod']>

const mutateCodes =
  (change: (deps: ClaimBlockDeps, name: string) => Partial<ClaimBlockDeps['codes']>): MutatePod =>
  (deps, { name }) => ({ ...deps, codes: { ...deps.codes, ...change(deps, name) } })

/** The writer id is the pod's name, and its last claim counts as the requested one. */
const compareWriterOnly: MutatePod = (deps, { name }) => {
  let requested = 0
  return {
    ...deps,
    newWriterId: () => name,
    codes: {
      ...deps.codes,
      claimNext(change) {
        requested = change.from + 1
        return deps.codes.claimNext(change)
      },
      async readPoolSerial(pool) {
        const row = await deps.codes.readPoolSerial(pool)
        return row?.writerId === name && requested > 0 ? { ...row, claimed: requested } : row
      },
    },
  }
}

/** A claim is won if the position is the requested one; the writer is not compared. */
const comparePositionOnly = mutateCodes((deps) => ({
  claimNext: async (change) => ({
    ...(await deps.codes.claimNext(change)),
    writerId: change.writerId,
  }),
}))

/** The read of the pool may be stale: it returns that no block has been minted. */
const readStale = mutateCodes((deps) => ({
  readPoolSerial: async (pool) => {
    const row = await deps.codes.readPoolSerial(pool)
    return row && { ...row, minted: 0 }
  },
}))

/** Mutants: each removes one clause of the protocol. */
export const poolMutants: readonly PoolMutant[] = [
  {
    name: 'the writer is the pod, and the position is not compared',
    setup: { jobs: [], pods: [2, 1], minted: 3, mutatePod: compareWriterOnly },
    timeouts: 1,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'the position is compared, the writer is not',
    setup: { jobs: [], pods: [1, 1], minted: 2, mutatePod: comparePositionOnly },
    timeouts: 0,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'the claim does not compare',
    setup: { jobs: [], pods: [2, 2], minted: 3, claimWithoutComparing: true },
    timeouts: 0,
    crashes: 0,
    breaks: 'a code was issued twice',
  },
  {
    name: 'the raise does not compare',
    setup: { jobs: [], pods: [3, 1], minted: 3, operators: [2], raiseCompares: 'neither' },
    timeouts: 0,
    crashes: 0,
    breaks: 'the level counts a missing block',
  },
  {
    name: 'the raise compares only the claimed blocks',
    setup: { jobs: [3], pods: [], minted: 1, operators: [2], raiseCompares: 'claimed' },
    timeouts: 0,
    crashes: 0,
    breaks: 'a counter fell',
  },
  {
    name: 'the raise does not change the minted blocks',
    setup: { jobs: [], pods: [], minted: 1, operators: [2], raiseClaimedOnly: true },
    timeouts: 0,
    crashes: 0,
    breaks: 'the level counts a missing block',
  },
  {
    name: 'pods start before the raise',
    setup: { jobs: [], pods: [1], minted: 2, operators: [3], lost: 3, startsEarly: true },
    timeouts: 0,
    crashes: 0,
    breaks: 'a lost code was issued',
  },
  {
    name: 'pool-empty from a read that is not serial',
    setup: { jobs: [], pods: [1], minted: 1, mutatePod: readStale },
    timeouts: 0,
    crashes: 0,
    breaks: 'pool-empty although blocks are left',
  },
  {
    name: 'the counter is moved although a block may not have been written',
    setup: {
      jobs: [1],
      pods: [],
      mutateJob: (deps) => ({
        ...deps,
        codes: {
          ...deps.codes,
          putBlock: (block) => deps.codes.putBlock(block).catch(() => undefined),
        },
      }),
    },
    timeouts: 1,
    crashes: 0,
    breaks: 'the level counts a missing block',
  },
  {
    name: 'the counter is moved before the blocks are written',
    setup: {
      jobs: [1],
      pods: [1],
      mutateJob: (deps) => ({
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
    timeouts: 0,
    crashes: 0,
    breaks: 'the level counts a missing block',
  },
  {
    name: 'the codes of a block depend on the order of minting, not on its number',
    setup: {
      jobs: [1, 1],
      pods: [1],
      mutateJob: (deps) => {
        let next = 64_000
        const permutation = { range: () => [(next += 64_000)] }
        return { ...deps, permutation }
      },
    },
    timeouts: 1,
    crashes: 0,
    breaks: 'an issued code is in the pool',
  },
]
