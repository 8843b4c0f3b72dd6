// The state of the code store in the model, the effect of each operation, and the invariants.
import type { Json, Op } from './replay.ts'

/** A pool's row. */
export type PoolRow = readonly [minted: number, claimed: number, writerId: string | null]

/** The pool, its blocks (of one code each), and the issued codes. */
export interface PoolState {
  readonly minted: number
  readonly claimed: number
  readonly writerId: string | null
  readonly blocks: readonly (readonly [seq: number, code: string])[]
  /** The issued codes; a code occurs once for each time that it was issued. */
  readonly issued: readonly string[]
  /** How many blocks operators have skipped. */
  readonly skipped: number
  /** The invalid outcomes of processes. */
  readonly problems: readonly string[]
}

/** Mutants of the store. */
export interface PoolMutation {
  readonly claimWithoutComparing?: boolean
  /** The counters that a raise compares, instead of both. */
  readonly raiseCompares?: 'neither' | 'claimed'
  /** A raise does not change `minted`. */
  readonly raiseClaimedOnly?: boolean
}

/** The effect of one operation, and its result. */
export function applyPoolOp(
  state: PoolState,
  op: Op,
  mutation: PoolMutation,
): { readonly state: PoolState; readonly result: Json } {
  const [name, at, second] = op as unknown as [string, number, string]
  const row = (after: PoolState) => {
    return { state: after, result: [after.minted, after.claimed, after.writerId] }
  }
  switch (name) {
    case 'read pool':
      return row(state)
    case 'claim': {
      const matches = mutation.claimWithoutComparing === true || state.claimed === at
      const after = { ...state, claimed: at + 1, writerId: second }
      return row(matches && at < state.minted ? after : state)
    }
    case 'advance minted':
      return row(state.minted === at ? { ...state, minted: Number(second) } : state)
    case 'raise':
      return raise(state, op, mutation)
    case 'put block': {
      const others = state.blocks.filter(([seq]) => seq !== at)
      const blocks = [...others, [at, second] as const].sort(([a], [b]) => a - b)
      return { state: { ...state, blocks }, result: null }
    }
    case 'read block':
      return { state, result: state.blocks.find(([seq]) => seq === at)?.[1] ?? null }
    case 'delete block':
      return {
        state: { ...state, blocks: state.blocks.filter(([seq]) => seq !== at) },
        result: null,
      }
    case 'issue':
      return { state: { ...state, issued: [...state.issued, String(at)].sort() }, result: null }
    default:
      throw new Error(`the model has no operation ${name}`)
  }
}

/** The effect of a raise: none unless the counters are the expected ones. */
function raise(state: PoolState, op: Op, { raiseCompares, raiseClaimedOnly }: PoolMutation) {
  const [from, to, writerId] = op.slice(1) as unknown as [PoolRow, number, string]
  const isMinted = raiseCompares !== undefined || from[0] === state.minted
  const isClaimed = raiseCompares === 'neither' || from[1] === state.claimed
  if (!isMinted || !isClaimed) return { state, result: null }
  const minted = raiseClaimedOnly === true ? state.minted : Math.max(to, from[0])
  const skipped = state.skipped + to - state.claimed
  const fell = minted < state.minted || to < state.claimed
  const problems = fell ? [...state.problems, 'a counter fell'].sort() : state.problems
  return { state: { ...state, claimed: to, minted, writerId, skipped, problems }, result: null }
}

/** The invariants that `state` violates. */
export function brokenPools(state: PoolState, run: { quiet: boolean; faults: number }): string[] {
  const { minted, claimed, blocks, issued, skipped } = state
  const broken = state.problems.map((what) =>
    what.startsWith('threw') ? 'a process threw an error' : what,
  )
  if (new Set(issued).size < issued.length) broken.push('a code was issued twice')
  const left = blocks.filter(([seq]) => seq > claimed && seq <= minted)
  if (left.length !== minted - claimed) broken.push('the level counts a missing block')
  if (left.some(([, code]) => issued.includes(code))) broken.push('an issued code is in the pool')
  if (run.quiet && claimed - skipped - issued.length > run.faults)
    broken.push('more blocks lost than faults')
  return broken
}
