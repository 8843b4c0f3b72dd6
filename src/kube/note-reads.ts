// Says once when a kind of objects cannot be read, and when it can again. Reads nothing itself.
import type { Health } from '../process/health.ts'
import type { Log } from '../telemetry/log.ts'
import type { KubeError } from './kube-error.ts'

/** Told how each kind is being read; tells health and the log, and `onRead` of every good read. */
export function noteReads(
  { health, log }: { health: Pick<Health, 'note'>; log: Pick<Log, 'info' | 'warn'> },
  onRead: () => void,
): (resource: string, failure: KubeError | undefined) => void {
  const failing = new Set<string>()
  return (resource, failure) => {
    health.note(resource, failure === undefined ? 'up' : 'down')
    if (failure === undefined) {
      onRead()
      if (failing.delete(resource)) log.info({ resource }, 'read again')
    } else if (!failing.has(resource)) {
      failing.add(resource)
      log.warn({ err: failure, resource }, 'cannot be read: trying again')
    }
  }
}
