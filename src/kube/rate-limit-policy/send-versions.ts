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
  /** Stores the newest version, as LastVersion; `undefined` if versions are not stored. */
  readonly write: LastVersion['write'] | undefined
  /** Drops the version that is not sent yet. */
  readonly stop: () => void
}

/** A version that is not stored within this time, or that cannot be stored, is sent without. */
const STORE_MS_MAX = 1000

/** Creates it for a process that has just become the leader. */
export function createVersionSender(deps: SendVersionsDeps): VersionSender {
  const { store, port, isLeading, scheduler } = deps
  let waiting: CompiledVersion | undefined
  let cancelDeadline: (() => void) | undefined
  const stop = () => {
    cancelDeadline?.()
    cancelDeadline = undefined
    waiting = undefined
  }
  const sendWaiting = () => {
    const version = waiting
    if (version === undefined) return
    stop()
    if (isLeading()) port.publish(version)
    else waitFor(version) // the Lease may still be renewed
  }
  const waitFor = (version: CompiledVersion) => {
    waiting = version
    cancelDeadline ??= scheduler.after(STORE_MS_MAX, sendWaiting)
  }
  if (store === undefined) {
    const send = (version: CompiledVersion) => {
      waiting = version
      sendWaiting()
    }
    return { send, write: undefined, stop }
  }
  const stored = createLastVersion({
    ...{ ...deps, ...store },
    onSettled(version) {
      if (version === waiting) sendWaiting()
    },
  })
  return {
    send(version, accepted) {
      waitFor(version)
      stored.record(version, accepted)
    },
    write: stored.write,
    stop,
  }
}
