// Sends versions of the rules to the limiters, each only after it is stored: a limiter that starts
// while there is no leader then has every limit that the others have.
import type { Scheduler } from '../scheduler.ts'
import { createLastVersion, type LastVersion, type LastVersionDeps } from './last-version.ts'
import type { CompiledVersion, RulesPort } from './rules-port.ts'

/** Dependencies. */
export interface SendVersionsDeps extends Omit<
  LastVersionDeps,
  'secret' | 'serialize' | 'onSettled'
> {
  /** Where the newest version is stored; `undefined`: it is not stored. */
  readonly store: Pick<LastVersionDeps, 'secret' | 'serialize'> | undefined
  readonly port: Pick<RulesPort, 'publish'>
  readonly isLeading: () => boolean
  readonly scheduler: Scheduler
}

/** Sends versions. */
export interface VersionSender {
  /** Stores a version with the specs that no status contains yet, and sends it. */
  readonly send: LastVersion['record']
  /** LastVersion's `write`; `undefined` if versions are not stored. */
  readonly write: LastVersion['write'] | undefined
  /** Drops the version that is not sent yet. */
  readonly stop: () => void
}

/** If no version is stored within this time, or storing fails, the newest one is sent anyway. */
const STORE_MS_MAX = 1000

/** Creates the sender of a process that has just become the leader. */
export function createVersionSender(deps: SendVersionsDeps): VersionSender {
  const { store, port, isLeading, scheduler } = deps
  /** The newest version, until it is sent. */
  let waiting: CompiledVersion | undefined
  let cancelDeadline: (() => void) | undefined
  /** The order in which versions were recorded. */
  const numbers = new WeakMap<CompiledVersion, number>()
  const numberOf = (version: CompiledVersion) => numbers.get(version) ?? 0
  let [recorded, sent] = [0, 0]
  const clearDeadline = () => {
    cancelDeadline?.()
    cancelDeadline = undefined
  }
  const startDeadline = () => {
    cancelDeadline ??= scheduler.after(STORE_MS_MAX, () => {
      cancelDeadline = undefined
      if (waiting !== undefined) sendNow(waiting)
    })
  }
  const sendNow = (version: CompiledVersion) => {
    if (numberOf(version) <= sent) return
    if (!isLeading()) {
      startDeadline() // the Lease may still be renewed
      return
    }
    clearDeadline()
    sent = numberOf(version)
    port.publish(version)
    if (version === waiting) waiting = undefined
    else startDeadline() // for the newest one
  }
  const record = (version: CompiledVersion) => {
    numbers.set(version, ++recorded)
    waiting = version
  }
  const stop = () => {
    clearDeadline()
    waiting = undefined
    sent = Infinity
  }
  if (store === undefined) {
    return {
      send(version) {
        record(version)
        sendNow(version)
      },
      write: undefined,
      stop,
    }
  }
  const stored = createLastVersion({ ...deps, ...store, onSettled: sendNow })
  return {
    send(version, accepted) {
      record(version)
      startDeadline()
      stored.record(version, accepted)
    },
    write: stored.write,
    stop,
  }
}
