// Whether a majority of replicas responds: the circuit breaker of every statement that needs one.
// Doubt begins when such a statement fails, when nodes change, and when none was sent for a while;
// probes settle it, through several nodes, as one node alone may be cut off from the others.
import { setImmediate as turn } from 'node:timers/promises'
import { pause, type Pause } from '../../resilience/deadline.ts'

/** What is known of the majority. */
export interface MajorityWatch {
  /** `undefined` until the first statement was answered, or probes were not. */
  isPresent(): boolean | undefined
  /** A statement that needs a majority was answered. */
  answered(nowMs: number): void
  /** A statement that needs a majority, sent at that time, failed. */
  failed(sentMs: number): void
  /** Probes now: nodes have changed. */
  doubt(): void
  /** To be called about once a second: doubts a majority that was not heard of for a while. */
  look(): void
  /** Every node is down: nothing is known until one is up again. */
  forget(): void
  /** Stops the probes. */
  stop(): Promise<void>
}

/** What the watch works with. */
export interface MajorityOptions {
  /** Sends probes to some nodes and does not wait; each that succeeds is reported by `answered`. */
  readonly probe: () => void
  readonly onChange: (isPresent: boolean) => void
  /** How to wait between probes; tests pass another. */
  readonly pause?: Pause
}

/** A majority that is back is noticed within this time and one round trip. */
export const PROBE_EVERY_MS = 500
/** So many rounds of probes without a success, and no other success meanwhile: it is missing. */
const SILENT_PROBES_MAX = 2
/** Looks without any success after which probes are sent. */
const QUIET_LOOKS_MAX = 5

/** Watches; nothing is known yet. */
export function createMajorityWatch(options: MajorityOptions): MajorityWatch {
  const ending = new AbortController()
  let isPresent: boolean | undefined
  let answers = 0
  let answeredMs = -Infinity
  let doubtedAt = -1
  let silentProbes = 0
  let doubts = 0
  let lookedAt = 0
  let quietLooks = 0
  let checking: Promise<void> | undefined

  const note = (isNow: boolean) => {
    if (isPresent === isNow) return
    isPresent = isNow
    options.onChange(isNow)
  }
  const check = async () => {
    for (;;) {
      const [doubted, rounds] = [doubtedAt, doubts]
      options.probe()
      await (options.pause ?? pause)(PROBE_EVERY_MS, ending.signal)
      await turn() // what arrived while this process was busy is read first
      if (answers !== doubtedAt || ending.signal.aborted) return
      // A round that began before the doubt, or before a node came up, proves nothing.
      const isSilent = doubted === doubtedAt && rounds === doubts
      if (isSilent && ++silentProbes >= SILENT_PROBES_MAX) note(false)
    }
  }
  const doubt = () => {
    if (ending.signal.aborted) return
    if (answers !== doubtedAt) {
      doubtedAt = answers // earlier answers prove nothing any more
      silentProbes = 0
    }
    checking ??= check().finally(() => {
      checking = undefined
    })
  }
  return {
    isPresent: () => isPresent,
    answered(nowMs) {
      answers++
      answeredMs = nowMs
      if (isPresent !== true) note(true)
    },
    failed(sentMs) {
      if (answeredMs < sentMs) doubt() // else others succeeded meanwhile: a contended row
    },
    doubt,
    look() {
      quietLooks = answers === lookedAt ? quietLooks + 1 : 0
      lookedAt = answers
      if (quietLooks >= QUIET_LOOKS_MAX) doubt()
    },
    forget() {
      isPresent = undefined
      silentProbes = 0
      doubts++
    },
    async stop() {
      ending.abort()
      await checking
    },
  }
}
