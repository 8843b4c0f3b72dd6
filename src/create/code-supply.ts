// The unused codes of the blocks that this process has claimed, in memory only. A create claims one
// of them (claim-code.ts). The next block is claimed in the background before the current one is
// used up. Codes that are left when the process stops are lost.
import { BLOCK_SIZE } from '../codes/block.ts'
import { type Clock, within } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'
import { type BlockClaim, claimBlock, type ClaimBlockDeps } from './claim-block.ts'

/** Why no code was returned: an empty pool, or an unavailable store. */
type NoCode = 'pool-empty' | 'store-unavailable'

/** A code, or the reason why none was returned. */
export type SuppliedCode =
  { readonly kind: 'code'; readonly code: string } | { readonly kind: NoCode }

/** Returns codes, each once. */
export interface CodeSupply {
  /** Returns the next code; if none is left, waits for a claim in flight until `deadlineMs`. */
  take(deadlineMs: number): SuppliedCode | Promise<SuppliedCode>
  /** Resolves the waiting `take` calls to `store-unavailable`; called when the store fails. */
  failWaiting(): void
}

/** Dependencies of the supply. */
export interface SupplyDeps extends ClaimBlockDeps {
  readonly monotonicMs: Clock
  readonly metrics: Pick<Metrics, 'blocksClaimed'>
  /** Starts a refill of the pool if one is due. Called after a claimed block or an empty pool. */
  readonly triggerRefill?: () => void
  /** Called with any error other than StoreError: a defect. */
  readonly onError: (error: unknown) => void
}

/** The next block is claimed when at most this many codes are left. */
const CODES_LEFT_MIN = BLOCK_SIZE / 5

/** Pause before the next claim after an empty pool or a failed claim. */
const CLAIM_PAUSE_MS = 1000

const timeoutError = () =>
  new StoreError('no block of codes by the deadline', { outcome: 'not-done' })

/** Creates an empty supply. */
export function createCodeSupply(deps: SupplyDeps): CodeSupply {
  const codes: string[] = []
  let claiming: Promise<BlockClaim['kind']> | undefined
  let pausedUntilMs = -Infinity
  let lastClaim: BlockClaim['kind'] | undefined
  const waiters = new Set<PromiseWithResolvers<'failed'>>()
  const pause = () => (pausedUntilMs = deps.monotonicMs() + CLAIM_PAUSE_MS)
  const claim = async (): Promise<BlockClaim['kind']> => {
    try {
      const claimed = await claimBlock(deps)
      const { kind } = claimed
      lastClaim = kind
      if (kind === 'empty' || kind === 'failed') pause()
      if (claimed.kind === 'block') {
        codes.unshift(...claimed.codes.reverse()) // taken from the end, oldest block first
        deps.metrics.blocksClaimed.inc({ pool: deps.pool })
      }
      if (kind === 'block' || kind === 'empty') deps.triggerRefill?.()
      return kind
    } catch (error) {
      lastClaim = 'failed'
      pause()
      throw error
    } finally {
      claiming = undefined
    }
  }
  const claimAhead = () => {
    if (codes.length > CODES_LEFT_MIN || claiming !== undefined) return
    if (deps.monotonicMs() < pausedUntilMs) return
    claiming = claim()
    claiming.catch(deps.onError)
  }
  /** Waits for the claim in flight, if any; resolves to `'block'` if it claimed one. */
  const waitForBlock = async (deadlineMs: number): Promise<'block' | NoCode> => {
    if (claiming === undefined) return lastClaim === 'failed' ? 'store-unavailable' : 'pool-empty'
    const waiter = Promise.withResolvers<'failed'>()
    waiters.add(waiter)
    try {
      const claimed = Promise.race([claiming, waiter.promise])
      const kind = await within(Math.max(0, deadlineMs - deps.monotonicMs()), claimed, timeoutError)
      if (kind === 'block') return kind
      return kind === 'empty' ? 'pool-empty' : 'store-unavailable'
    } catch (error) {
      if (error instanceof StoreError) return 'store-unavailable'
      throw error
    } finally {
      waiters.delete(waiter)
    }
  }
  const takeNow = (): SuppliedCode | undefined => {
    claimAhead()
    const code = codes.pop()
    return code === undefined ? undefined : { kind: 'code', code }
  }
  const takeWhenAvailable = async (deadlineMs: number): Promise<SuppliedCode> => {
    for (;;) {
      const kind = await waitForBlock(deadlineMs)
      if (kind !== 'block') return { kind }
      const taken = takeNow()
      if (taken !== undefined) return taken
    }
  }
  return {
    take: (deadlineMs) => takeNow() ?? takeWhenAvailable(deadlineMs),
    failWaiting() {
      for (const { resolve } of waiters) resolve('failed')
    },
  }
}
