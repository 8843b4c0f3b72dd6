// A model store of a pool and its blocks; Jobs that run the real refillPool(), pods that run the
// real claimBlock(), and operators that run the real raisePool(). A mutant replaces dependencies of
// the real code.
import { mintBlock } from '../../src/codes/block.ts'
import type { Pool } from '../../src/codes/pool.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { claimBlock, type ClaimBlockDeps } from '../../src/create/claim-block.ts'
import { raisePool, type RaisePoolDeps } from '../../src/pools/raise-pool.ts'
import { refillPool, type RefillDeps } from '../../src/pools/refill-pool.ts'
import type { Model } from './explore.ts'
import {
  applyPoolOp,
  brokenPools,
  type PoolMutation,
  type PoolRow,
  type PoolState,
} from './pool-state.ts'
import type { Perform, Json, Process } from './replay.ts'

/** The options of a scenario, except its faults. */
export interface PoolSetup extends PoolMutation {
  /** The target of each Job, in blocks. */
  readonly jobs: readonly number[]
  /** The number of blocks that each pod claims. */
  readonly pods: readonly number[]
  /** The number of blocks in the initial pool. */
  readonly minted?: number
  /** The block to which each operator raises the pool. */
  readonly operators?: readonly number[]
  /** Blocks that were issued before the pool was restored: pods start when it is raised. */
  readonly lost?: number
  /** Pods start at any time. */
  readonly startsEarly?: boolean
  /** Replaces dependencies of the real code. */
  readonly mutatePod?: (
    deps: ClaimBlockDeps,
    own: { name: string; perform: Perform },
  ) => ClaimBlockDeps
  readonly mutateJob?: (deps: RefillDeps, own: { name: string; perform: Perform }) => RefillDeps
}

const metrics = createMetrics()
const signal = new AbortController().signal
const POOL = 'default'

/** One code per block, so that states stay small: the first code of its range. */
const permutation = { range: (start: number) => [start] }

/** The model and processes of a scenario. */
export function poolScenario(setup: PoolSetup): { model: Model<PoolState>; processes: Process[] } {
  const minted = setup.minted ?? 0
  const blocks = Array.from(
    { length: minted },
    (_, i) => [i + 1, `block ${String(i + 1)}`] as const,
  )
  const lost = new Set(
    Array.from({ length: setup.lost ?? 0 }, (_, i) => [
      `block ${String(i + 1)}`,
      ...mintBlock(permutation, { poolNumber: 0, seq: i + 1 }, () => false),
    ]).flat(),
  )
  const model: Model<PoolState> = {
    initial: { minted, claimed: 0, writerId: null, blocks, issued: [], skipped: 0, problems: [] },
    apply: (state, op) => applyPoolOp(state, op, setup),
    finish: (state, _, outcome) =>
      outcome === 'done'
        ? state
        : { ...state, problems: [...state.problems, String(outcome)].sort() },
    broken: (state, run) => {
      const isReused = state.issued.some((code) => lost.has(code))
      return [...brokenPools(state, run), ...(isReused ? ['a lost code was issued'] : [])]
    },
  }
  const jobs = setup.jobs.map((target, i) => jobOf(`job ${String(i)}`, target, setup))
  const pods = setup.pods.map((claims, i) => podOf(`pod ${String(i)}`, claims, setup))
  const operators = (setup.operators ?? []).map((to, i) => operatorOf(`operator ${String(i)}`, to))
  return { model, processes: [...jobs, ...pods, ...operators] }
}

/** A Job that is retried after a store error, as Kubernetes does. */
function jobOf(name: string, target: number, { mutateJob }: PoolSetup): Process {
  const marks = { lowWater: target * 1000, target: target * 1000 }
  return {
    name,
    async run(perform) {
      const deps: RefillDeps = {
        codes: codesOf(perform),
        pool: POOL,
        permutation,
        secretFingerprint: 'f00d',
        metrics,
        signal,
      }
      for (let run = 0; run < 3; run++) {
        try {
          await refillPool(mutateJob?.(deps, { name, perform }) ?? deps, marks)
          return 'done'
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
        }
      }
      return 'done'
    },
  }
}

/** The last claimed block; 0 if the store fails. */
async function readClaimed({ codes }: Pick<ClaimBlockDeps, 'codes'>): Promise<number> {
  try {
    return (await codes.readPoolSerial(POOL))?.claimed ?? 0
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return 0
  }
}

/** An operator: the command is repeated after an error of the store. */
function operatorOf(name: string, to: number): Process {
  return {
    name,
    async run(perform) {
      const raiseClaimed: RaisePoolDeps['raiseClaimed'] = async (change) => {
        const { minted, claimed } = change.from
        const from = [minted, claimed, null] satisfies PoolRow
        await perform('write', ['raise', from, change.to, change.writerId])
      }
      const deps: RaisePoolDeps = {
        codes: codesOf(perform),
        raiseClaimed,
        newWriterId: () => name,
      }
      for (let run = 0; run < 3; run++) {
        try {
          const { after } = await raisePool(deps, { pool: POOL, to })
          return after.claimed < to ? 'the pool is not raised' : 'done'
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
        }
      }
      return 'done'
    },
  }
}

/** A pod that claims up to `claims` blocks, or until the pool is empty. */
function podOf(name: string, claims: number, setup: PoolSetup): Process {
  const { mutatePod, lost = 0, startsEarly = lost === 0 } = setup
  return {
    name,
    async run(perform) {
      let ids = 0
      const last: { row?: PoolRow } = {}
      const deps: ClaimBlockDeps = {
        codes: codesOf(perform, (row) => (last.row = row)),
        pool: POOL,
        signal,
        newWriterId: () => `${name}.${String(ids++)}`,
        pause: () => Promise.resolve(),
      }
      const mayStart = startsEarly || (await readClaimed(deps)) >= lost
      if (!mayStart) return 'done'
      for (let i = 0; i < claims; i++) {
        const claimed = await claimBlock(mutatePod?.(deps, { name, perform }) ?? deps)
        if (claimed.kind === 'block') await perform('local', ['issue', ...claimed.codes])
        const wasLeft = last.row === undefined || last.row[1] < last.row[0]
        if (claimed.kind === 'empty')
          return wasLeft ? 'pool-empty although blocks are left' : 'done'
      }
      return 'done'
    },
  }
}

/** The code store: each call is an operation on the model. `onRow` receives the unmodified row. */
function codesOf(
  perform: Perform,
  onRow: (row: PoolRow) => void = () => undefined,
): ClaimBlockDeps['codes'] & RefillDeps['codes'] {
  const poolOf = (result: Json): Pool => {
    const row = result as unknown as PoolRow
    onRow(row)
    const [minted, claimed, writerId] = row
    return { pool: POOL, poolNumber: 0, minted, claimed, writerId, secretFingerprint: 'f00d' }
  }
  return {
    readPoolSerial: async () => poolOf(await perform('read', ['read pool'])),
    claimNext: async ({ from, writerId }) =>
      poolOf(await perform('write', ['claim', from, writerId])),
    advanceMinted: async ({ from, to }) =>
      poolOf(await perform('write', ['advance minted', from, to])),
    async putBlock({ seq, codes }) {
      await perform('write', ['put block', seq, ...codes])
    },
    async readBlock({ seq }) {
      const codes = await perform('read', ['read block', seq])
      return codes === null ? undefined : [String(codes)]
    },
    async deleteBlock({ seq }) {
      await perform('write', ['delete block', seq])
    },
  }
}
