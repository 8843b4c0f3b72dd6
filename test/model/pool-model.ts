// A pool and its blocks as a model store; Jobs that run the real refillPool() and pods that run the
// real claimBlock(). A mutant may bend what the real code is given.
import type { Pool } from '../../src/codes/pool.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { StoreError } from '../../src/resilience/store-error.ts'
import { claimBlock, type ClaimBlockDeps } from '../../src/create/claim-block.ts'
import { refillPool, type RefillDeps } from '../../src/pools/refill-pool.ts'
import type { Model } from './explore.ts'
import {
  applyPoolOp,
  brokenPools,
  type PoolBent,
  type PoolRow,
  type PoolState,
} from './pool-state.ts'
import type { Ask, Json, Process } from './replay.ts'

/** Everything that can be chosen of a scenario but its faults. */
export interface PoolSetup extends PoolBent {
  /** For each Job, how many blocks it is to bring the pool to. */
  readonly jobs: readonly number[]
  /** For each pod, how many blocks it claims. */
  readonly pods: readonly number[]
  /** Blocks there from the start. */
  readonly minted?: number
  /** Changes what the real code is given. */
  readonly bendPod?: (deps: ClaimBlockDeps, own: { name: string; ask: Ask }) => ClaimBlockDeps
  readonly bendJob?: (deps: RefillDeps, own: { name: string; ask: Ask }) => RefillDeps
}

const metrics = createMetrics()
const signal = new AbortController().signal
const POOL = 'default'

/** One code a block, so that states stay small: the first of its range. */
const permutation = { range: (start: number) => [start] }

/** The model and processes of a scenario. */
export function poolScenario(setup: PoolSetup): { model: Model<PoolState>; processes: Process[] } {
  const minted = setup.minted ?? 0
  const blocks = Array.from(
    { length: minted },
    (_, i) => [i + 1, `block ${String(i + 1)}`] as const,
  )
  const model: Model<PoolState> = {
    initial: { minted, claimed: 0, writerId: null, blocks, issued: [], ill: [] },
    apply: (state, op) => applyPoolOp(state, op, setup),
    finish: (state, _, outcome) =>
      outcome === 'done' ? state : { ...state, ill: [...state.ill, String(outcome)].sort() },
    broken: brokenPools,
  }
  const jobs = setup.jobs.map((target, i) => jobOf(`job ${String(i)}`, target, setup))
  const pods = setup.pods.map((claims, i) => podOf(`pod ${String(i)}`, claims, setup))
  return { model, processes: [...jobs, ...pods] }
}

/** A Job that is run again, as Kubernetes does, where the store failed it. */
function jobOf(name: string, target: number, { bendJob }: PoolSetup): Process {
  const marks = { lowWater: target * 1000, target: target * 1000 }
  return {
    name,
    async run(ask) {
      const deps: RefillDeps = {
        codes: codesOf(ask),
        pool: POOL,
        permutation,
        secretFingerprint: 'f00d',
        metrics,
        signal,
      }
      for (let run = 0; run < 3; run++) {
        try {
          await refillPool(bendJob?.(deps, { name, ask }) ?? deps, marks)
          return 'done'
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
        }
      }
      return 'done'
    },
  }
}

/** A pod that claims blocks until it has its number of them, or finds the pool empty. */
function podOf(name: string, claims: number, { bendPod }: PoolSetup): Process {
  return {
    name,
    async run(ask) {
      let ids = 0
      const seen: { row?: PoolRow } = {}
      const deps: ClaimBlockDeps = {
        codes: codesOf(ask, (row) => (seen.row = row)),
        pool: POOL,
        signal,
        newWriterId: () => `${name}.${String(ids++)}`,
        pause: () => Promise.resolve(),
      }
      for (let i = 0; i < claims; i++) {
        const claimed = await claimBlock(bendPod?.(deps, { name, ask }) ?? deps)
        if (claimed.kind === 'block') await ask('local', ['issue', ...claimed.codes])
        const wasLeft = seen.row === undefined || seen.row[1] < seen.row[0]
        if (claimed.kind === 'empty')
          return wasLeft ? 'pool-empty although blocks are left' : 'done'
      }
      return 'done'
    },
  }
}

/** The store of codes: each call is put to the explorer. `onRow` sees what the pool truly held. */
function codesOf(
  ask: Ask,
  onRow: (row: PoolRow) => void = () => undefined,
): ClaimBlockDeps['codes'] & RefillDeps['codes'] {
  const poolOf = (answer: Json): Pool => {
    const row = answer as unknown as PoolRow
    onRow(row)
    const [minted, claimed, writerId] = row
    return { pool: POOL, poolNumber: 0, minted, claimed, writerId, secretFingerprint: 'f00d' }
  }
  return {
    readPoolSerial: async () => poolOf(await ask('read', ['pool?'])),
    claimNext: async ({ from, writerId }) => poolOf(await ask('write', ['claim', from, writerId])),
    advanceMinted: async ({ from, to }) => poolOf(await ask('write', ['advance', from, to])),
    async putBlock({ seq, codes }) {
      await ask('write', ['put', seq, ...codes])
    },
    async readBlock({ seq }) {
      const codes = await ask('read', ['block?', seq])
      return codes === null ? undefined : [String(codes)]
    },
    async deleteBlock({ seq }) {
      await ask('write', ['drop', seq])
    },
  }
}
