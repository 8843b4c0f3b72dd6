// Whether a majority of replicas responds: the circuit breaker of statements that need one.
// A failed statement, a node change or an idle period marks the majority as suspect. Probes through
// several nodes then decide, because a single node may be partitioned from the others.
import { setImmediate as turn } from 'node:timers/promises'
import { pause, type Pause } from '../../resilience/deadline.ts'

/** The observed state of the majority. */
export interface MajorityWatch {
  /** Whether a majority responds; `undefined` at the start and after a reset, until it is known. */
  isPresent(): boolean | undefined
  /** Records that a statement that needs a majority succeeded. */
  noteSuccess(nowMs: number): void
  /** Records that a statement that needs a majority, sent at `sentMs`, failed. */
  noteFailure(sentMs: number): void
  /** Starts to probe, for example after a node change. */
  suspect(): void
  /** Called about once a second; starts to probe after an idle period. */
  tick(): void
  /** Resets the state to unknown, because every node is down. */
  reset(): void
  /** Stops the probes. */
  stop(): Promise<void>
}

/** Options of the watch. */
export interface MajorityOptions {
  /** Sends probes to some nodes without waiting; each success is reported by `noteSuccess`. */
  readonly probe: () => void
  readonly onChange: (isPresent: boolean) => void
  /** Waits between probes; replaced in tests. */
  readonly pause?: Pause
}

/** A recovered majority is detected within this period plus one round trip. */
export const PROBE_EVERY_MS = 500
/** Rounds of probes without any success after which the majority counts as missing. */
const FAILED_ROUNDS_MAX = 2
/** Ticks without any success after which probes are sent. */
const IDLE_TICKS_MAX = 5

/** Creates a watch whose state is unknown. */
export function createMajorityWatch(options: MajorityOptions): MajorityWatch {
  const stopping = new AbortController()
  let isPresent: boolean | undefined
  let successes = 0
  let lastSuccessMs = -Infinity
  let successesAtSuspicion = -1
  let failedRounds = 0
  let resets = 0
  let successesAtTick = 0
  let idleTicks = 0
  let probing: Promise<void> | undefined

  const setPresent = (isNow: boolean) => {
    if (isPresent === isNow) return
    isPresent = isNow
    options.onChange(isNow)
  }
  const probeUntilSuccess = async () => {
    for (;;) {
      const [suspicionBefore, resetsBefore] = [successesAtSuspicion, resets]
      options.probe()
      await (options.pause ?? pause)(PROBE_EVERY_MS, stopping.signal)
      await turn() // after a stall of this process, pending responses are read first
      if (successes !== successesAtSuspicion || stopping.signal.aborted) return
      // A round that started before the last suspicion or reset does not count.
      const isValid = suspicionBefore === successesAtSuspicion && resetsBefore === resets
      if (isValid && ++failedRounds >= FAILED_ROUNDS_MAX) setPresent(false)
    }
  }
  const suspect = () => {
    if (stopping.signal.aborted) return
    if (successes !== successesAtSuspicion) {
      successesAtSuspicion = successes // earlier successes no longer count
      failedRounds = 0
    }
    probing ??= probeUntilSuccess().finally(() => {
      probing = undefined
    })
  }
  return {
    isPresent: () => isPresent,
    noteSuccess(nowMs) {
      successes++
      lastSuccessMs = nowMs
      if (isPresent !== true) setPresent(true)
    },
    noteFailure(sentMs) {
      if (lastSuccessMs < sentMs) suspect() // otherwise others succeeded: the row is contended
    },
    suspect,
    tick() {
      idleTicks = successes === successesAtTick ? idleTicks + 1 : 0
      successesAtTick = successes
      if (idleTicks >= IDLE_TICKS_MAX) suspect()
    },
    reset() {
      isPresent = undefined
      failedRounds = 0
      resets++
    },
    async stop() {
      stopping.abort()
      await probing
    },
  }
}
