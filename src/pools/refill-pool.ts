// Refills a pool: mints blocks (generates their codes), writes them and advances the pool's counter
// `minted`. It may be killed at any time and may run concurrently: a block's number determines its
// codes, so minting and writing a block a second time changes nothing.
import { mintBlock } from '../codes/block.ts'
import type { CodeStore } from '../codes/code-store.ts'
import type { Permutation } from '../codes/permutation.ts'
import { type Pool, type PoolMarks, planRefill } from '../codes/pool.ts'
import { isReserved } from '../links/reserved.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** The pool was created with a different code secret. */
export class OtherSecretError extends Error {
  override readonly name = 'OtherSecretError'
}

/** Dependencies of a refill. */
export interface RefillDeps {
  readonly codes: Pick<CodeStore, 'readPoolSerial' | 'putBlock' | 'advanceMinted'>
  readonly pool: string
  readonly permutation: Permutation
  /** Fingerprint of the permutation's secret; a pool with another fingerprint is rejected. */
  readonly secretFingerprint: string
  readonly metrics: Pick<Metrics, 'codesMinted'>
  readonly signal: AbortSignal
  /** Called with the pool's row after each advance of `minted`. */
  readonly onMinted?: (pool: Pool) => void
}

/** The maximum number of blocks that are written before `minted` is advanced past them. */
const BLOCKS_PER_ADVANCE_MAX = 10

/**
 * Fills the pool up to `marks.target` if it is below `marks.lowWater`; resolves to its latest
 * row. Resolves early if `signal` aborts. Throws OtherSecretError, or StoreError: a rerun is safe.
 */
export async function refillPool(deps: RefillDeps, marks: PoolMarks): Promise<Pool> {
  let pool = await readPool(deps)
  const wanted = pool.minted + planRefill(pool, marks)
  while (pool.minted < wanted && !deps.signal.aborted) {
    const from = pool.minted
    const to = Math.min(wanted, from + BLOCKS_PER_ADVANCE_MAX)
    const codesWritten = await putBlocks(deps, { pool, from, to })
    // Has no effect if another process has advanced `minted`, after it wrote the same blocks.
    pool = await deps.codes.advanceMinted({ pool: deps.pool, from, to })
    deps.metrics.codesMinted.inc({ pool: deps.pool }, codesWritten)
    deps.onMinted?.(pool)
  }
  return pool
}

async function readPool(deps: RefillDeps): Promise<Pool> {
  const pool = await deps.codes.readPoolSerial(deps.pool)
  if (pool === undefined) throw new Error(`unknown pool ${deps.pool}`)
  if (pool.secretFingerprint !== deps.secretFingerprint) {
    throw new OtherSecretError(
      `pool ${deps.pool} was created with a different code secret: use the original one`,
    )
  }
  return pool
}

/** Generates and writes the blocks `from + 1` … `to`; resolves to the number of their codes. */
async function putBlocks(
  deps: RefillDeps,
  span: { pool: Pool; from: number; to: number },
): Promise<number> {
  const writes: Promise<void>[] = []
  let count = 0
  for (let seq = span.from + 1; seq <= span.to; seq++) {
    const codes = mintBlock(deps.permutation, { poolNumber: span.pool.poolNumber, seq }, isReserved)
    count += codes.length
    writes.push(deps.codes.putBlock({ pool: deps.pool, seq, codes }))
  }
  await Promise.all(writes)
  return count
}
