// What the store of codes holds in the model, what one call does to it, and what must hold of it in
// every state.
import type { Json, Op } from './replay.ts'

/** A pool's row. */
export type PoolRow = readonly [minted: number, claimed: number, writerId: string | null]

/** The pool, its blocks (of one code each), and what has come of them. */
export interface PoolState {
  readonly minted: number
  readonly claimed: number
  readonly writerId: string | null
  readonly blocks: readonly (readonly [seq: number, code: string])[]
  /** Codes that pods hold, each as often as it was given out. */
  readonly issued: readonly string[]
  /** What processes found that must not be. */
  readonly ill: readonly string[]
}

/** Mutants of the store. */
export interface PoolBent {
  readonly claimWithoutComparing?: boolean
}

/** The effect of one call. */
export function applyPoolOp(
  state: PoolState,
  op: Op,
  bent: PoolBent,
): { readonly state: PoolState; readonly answer: Json } {
  const [name, at, second] = op as unknown as [string, number, string]
  const row = (after: PoolState) => {
    return { state: after, answer: [after.minted, after.claimed, after.writerId] }
  }
  switch (name) {
    case 'pool?':
      return row(state)
    case 'claim': {
      const holds = bent.claimWithoutComparing === true || state.claimed === at
      const after = { ...state, claimed: at + 1, writerId: second }
      return row(holds && at < state.minted ? after : state)
    }
    case 'advance':
      return row(state.minted === at ? { ...state, minted: Number(second) } : state)
    case 'put': {
      const others = state.blocks.filter(([seq]) => seq !== at)
      const blocks = [...others, [at, second] as const].sort(([a], [b]) => a - b)
      return { state: { ...state, blocks }, answer: null }
    }
    case 'block?':
      return { state, answer: state.blocks.find(([seq]) => seq === at)?.[1] ?? null }
    case 'drop':
      return {
        state: { ...state, blocks: state.blocks.filter(([seq]) => seq !== at) },
        answer: null,
      }
    case 'issue':
      return { state: { ...state, issued: [...state.issued, String(at)].sort() }, answer: null }
    default:
      throw new Error(`the model has no ${name}`)
  }
}

/** The promises that `state` breaks. */
export function brokenPools(state: PoolState, seen: { quiet: boolean; faults: number }): string[] {
  const { minted, claimed, blocks, issued } = state
  const broken = state.ill.map((what) =>
    what.startsWith('threw') ? 'a process failed loudly' : what,
  )
  if (new Set(issued).size < issued.length) broken.push('a code was issued twice')
  const left = blocks.filter(([seq]) => seq > claimed && seq <= minted)
  if (left.length !== minted - claimed) broken.push('the level counts a block that is not there')
  if (left.some(([, code]) => issued.includes(code))) broken.push('an issued code is in the pool')
  if (seen.quiet && claimed - issued.length > seen.faults)
    broken.push('more blocks lost than faults')
  return broken
}
