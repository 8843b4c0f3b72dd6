// Claims the next block of a pool for this process. A block has one owner, and a claim of unknown
// outcome is resolved before the next one starts: a block may be lost, but is never used twice.
import { randomUUID } from 'node:crypto'
import type { CodeStore } from '../codes/code-store.ts'
import type { Pool } from '../codes/pool.ts'
import {
  createBackOff,
  resultOrFailed,
  resultOrOutcome,
  type RetryDeps,
  retryUntilStopped,
} from '../resilience/retry-until-deadline.ts'

/** The codes of a claimed block, or the reason why no block was claimed. */
export type BlockClaim =
  | { readonly kind: 'block'; readonly seq: number; readonly codes: string[] }
  | { readonly kind: 'empty' | 'failed' | 'stopped' }

/** Dependencies of a claim. */
export interface ClaimBlockDeps extends RetryDeps {
  readonly codes: Pick<CodeStore, 'readPoolSerial' | 'claimNext' | 'readBlock' | 'deleteBlock'>
  readonly pool: string
  /** Aborts the wait for an unavailable store. */
  readonly signal: AbortSignal
  /** Creates the id of a claim, not of the process. @default randomUUID */
  readonly newWriterId?: () => string
}

/**
 * Claims one block. Returns `empty` only if a serial read, or the row that a claim returned, shows
 * that all blocks of the pool are claimed or that the pool does not exist; and `failed` only if
 * the last claim had no effect and can have none later. Failed reads and claims of unknown outcome
 * are retried until `signal` aborts; the result is then `stopped`. Throws if a claimed block is
 * absent.
 */
export async function claimBlock(deps: ClaimBlockDeps): Promise<BlockClaim> {
  const newWriterId = deps.newWriterId ?? randomUUID
  let writerId = newWriterId()
  /** Whether an earlier attempt with this `writerId` may still take effect. */
  let isPending = false
  const backOff = createBackOff(deps)
  let row = await retryUntilStopped(deps, () => deps.codes.readPoolSerial(deps.pool))
  for (;;) {
    if (row === 'stopped') return { kind: 'stopped' }
    if (row === undefined || row.claimed >= row.minted) return { kind: 'empty' }
    const from: number = row.claimed
    const after = await resultOrOutcome(deps.codes.claimNext({ pool: deps.pool, from, writerId }))
    if (after === 'not-done' && !isPending) return { kind: 'failed' }
    if (after === 'not-done' || after === 'unknown') {
      isPending = true
      await backOff()
      row = await retryUntilStopped(deps, () => deps.codes.readPoolSerial(deps.pool))
    } else {
      row = after
    }
    if (row === 'stopped') return { kind: 'stopped' }
    if (isOwnClaim(row, { seq: from + 1, writerId })) return takeBlock(deps, from + 1)
    // If the block is still unclaimed, the same claim is retried with the same id. Otherwise that
    // claim can no longer take effect.
    if (row?.claimed === from) continue
    writerId = newWriterId()
    isPending = false
  }
}

/**
 * Whether `row` shows this claim as the pool's latest. The counter alone does not prove it: another
 * process may have claimed `seq`.
 */
function isOwnClaim(row: Pool | undefined, claim: { seq: number; writerId: string }): boolean {
  return row?.claimed === claim.seq && row.writerId === claim.writerId
}

async function takeBlock(deps: ClaimBlockDeps, seq: number): Promise<BlockClaim> {
  const block = { pool: deps.pool, seq }
  const codes = await retryUntilStopped(deps, () => deps.codes.readBlock(block))
  if (codes === 'stopped') return { kind: 'stopped' }
  if (codes === undefined)
    throw new Error(`block ${String(seq)} of pool ${deps.pool} is claimed but missing`)
  await resultOrFailed(deps.codes.deleteBlock(block)) // if it remains, no claim reads it
  return { kind: 'block', seq, codes }
}
