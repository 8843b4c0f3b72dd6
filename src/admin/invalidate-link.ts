// After a change of the store the shared cache must forget the link, whatever it takes: what the
// cache did not confirm is repeated until it does. Writes nothing into the cache, ever: a value
// could overtake a later change, "forget it" cannot.
import type { LinkCache } from '../links/link-cache.ts'
import { type Clock, pause, type Pause } from '../resilience/deadline.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { StoreError } from '../resilience/store-error.ts'

/** Makes the shared cache forget links. */
export interface LinkForgetter {
  /**
   * Once; what the cache does not confirm is then repeated in the background. Resolves by the
   * deadline of one call of the cache, and never rejects.
   */
  forget(code: string): Promise<void>
  /**
   * Twice, AGAIN_MS apart, for a failover may have lost the first. Resolves to whether the cache
   * confirmed both, by CONFIRM_MS_MAX and AGAIN_MS; else it is repeated in the background.
   */
  confirm(code: string): Promise<boolean>
  /** Says once more what is not confirmed, and ends. */
  stop(): Promise<void>
}

/** What forgetting needs. */
export interface ForgetDeps {
  readonly cache: Pick<LinkCache, 'forget'>
  readonly monotonicMs: Clock
  readonly metrics: {
    readonly linkForgetsQueued: Pick<Metrics['linkForgetsQueued'], 'set'>
    readonly linkForgetsDropped: Pick<Metrics['linkForgetsDropped'], 'inc'>
  }
  /** Told of a defect of the cache; what it did not answer is no defect. */
  readonly onError: (error: unknown) => void
  /** How to wait before a repeat; tests, whose clock is their own, bring another. */
  readonly pause?: Pause
}

/** When a change is confirmed a second time. */
export const AGAIN_MS = 1000

/** How long an operator's change waits for the cache to confirm, twice at most. */
export const CONFIRM_MS_MAX = 1000

/** Codes that wait for the cache; beyond, the oldest are given up: their entries end soonest. */
export const QUEUED_MAX = 10_000

const REPEAT_MS = 20
const REPEAT_MS_MAX = 1000
const AT_ONCE_MAX = 100

/** Makes a forgetter with nothing to repeat. */
export function createLinkForgetter(deps: ForgetDeps): LinkForgetter {
  const ending = new AbortController()
  const wait = (ms: number) => (deps.pause ?? pause)(ms, ending.signal)
  const tell = async (code: string): Promise<boolean> => {
    try {
      await deps.cache.forget(code)
      return true
    } catch (error) {
      if (!(error instanceof StoreError)) deps.onError(error)
      return false
    }
  }
  const queue = createRepeatQueue({ ...deps, tell, wait, signal: ending.signal })
  const toldBy = async (code: string, deadlineMs: number): Promise<boolean> => {
    for (let failures = 0; !(await tell(code)); failures++) {
      if (deps.monotonicMs() >= deadlineMs || ending.signal.aborted) return false
      await wait(repeatMs(failures))
    }
    return true
  }
  const confirmed = async (code: string): Promise<boolean> => {
    if (!(await toldBy(code, deps.monotonicMs() + CONFIRM_MS_MAX))) return false
    await wait(AGAIN_MS)
    return !ending.signal.aborted && toldBy(code, deps.monotonicMs() + CONFIRM_MS_MAX)
  }
  return {
    async forget(code) {
      if (!(await tell(code))) queue.add(code)
    },
    async confirm(code) {
      const isConfirmed = await confirmed(code)
      if (!isConfirmed) queue.add(code)
      return isConfirmed
    },
    async stop() {
      ending.abort()
      await queue.ended()
    },
  }
}

function createRepeatQueue(
  given: ForgetDeps & {
    tell: (code: string) => Promise<boolean>
    wait: (ms: number) => Promise<void>
    signal: AbortSignal
  },
) {
  const { tell, wait, metrics, signal } = given
  const codes = new Set<string>()
  let repeating: Promise<void> | undefined
  const note = () => {
    metrics.linkForgetsQueued.set(codes.size)
  }
  const put = (code: string) => {
    codes.add(code)
    const [oldest] = codes
    if (codes.size <= QUEUED_MAX || oldest === undefined) return
    codes.delete(oldest)
    metrics.linkForgetsDropped.inc(1)
  }
  /** The oldest, side by side; whether one of them was confirmed. */
  const round = async (codesMax: number): Promise<boolean> => {
    const some = [...codes].slice(0, codesMax)
    // Taken out first: a change that comes meanwhile must be told again, whatever comes of this.
    for (const code of some) codes.delete(code)
    const told = await Promise.all(some.map(tell))
    for (const [i, code] of some.entries()) if (told[i] !== true) put(code)
    note()
    return told.includes(true)
  }
  const repeat = async () => {
    try {
      let failures = 0
      while (codes.size > 0 && !signal.aborted) {
        await wait(repeatMs(failures))
        failures = (await round(failures === 0 ? AT_ONCE_MAX : 1)) ? 0 : failures + 1
      }
      if (codes.size > 0) await round(QUEUED_MAX)
    } finally {
      repeating = undefined
    }
  }
  return {
    add(code: string) {
      put(code)
      note()
      repeating ??= repeat()
    },
    ended: () => repeating,
  }
}

/** The pause after so many failures. */
function repeatMs(failures: number): number {
  return Math.min(REPEAT_MS * 2 ** Math.min(failures, 10), REPEAT_MS_MAX)
}
