// Logs once when the reads of a resource start to fail, and once when they recover.
import type { Health } from '../process/health.ts'
import type { Log } from '../telemetry/log.ts'
import type { KubeError } from './kube-error.ts'

/** Reports read results to health and the log, and calls `onRead` for each successful read. */
export function reportReads(
  { health, log }: { health: Pick<Health, 'note'>; log: Pick<Log, 'info' | 'warn'> },
  onRead: () => void,
): (resource: string, failure: KubeError | undefined) => void {
  const failing = new Set<string>()
  return (resource, failure) => {
    health.note(resource, failure === undefined ? 'up' : 'down')
    if (failure === undefined) {
      onRead()
      if (failing.delete(resource)) log.info({ resource }, 'watched resource available again')
    } else if (!failing.has(resource)) {
      failing.add(resource)
      log.warn({ err: failure, resource }, 'watched resource unreadable: retrying')
    }
  }
}
