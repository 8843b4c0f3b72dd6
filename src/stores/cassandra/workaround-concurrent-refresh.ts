// Workaround for cassandra-driver 4.10: when it loses its control connection twice in a row, two
// refreshes run concurrently, one replaces the other's connection, and the other's rejection is
// unhandled, which would crash the process. This runs one refresh at a time and retries a failed
// one. A refresh that completes after shutdown has discovered nodes that must be closed.
import type { Log } from '../../telemetry/log.ts'

/** The member of the driver's control connection that is patched. */
export interface RefreshableControl {
  /** Without hosts: a new refresh; with hosts: the next step of the current one. */
  _refresh(hosts?: unknown): Promise<void>
}

const RETRY_MS = 500

/** Options of the workaround. */
export interface SerializeRefreshOptions {
  readonly log: Pick<Log, 'debug'>
  /** Stops the retries. */
  readonly isClosed: () => boolean
  /** Called when a refresh completes on a closed client: the discovered nodes must be closed. */
  readonly onRefreshAfterClose: () => void
}

/** Patches one client's control connection. */
export function serializeRefreshes(
  control: RefreshableControl,
  { log, isClosed, onRefreshAfterClose }: SerializeRefreshOptions,
): void {
  const refresh = control._refresh.bind(control)
  let isRunning = false
  let isPending = false
  const start = async (): Promise<void> => {
    if (isRunning) {
      isPending = true // the current refresh's result may be outdated
      return
    }
    isRunning = true
    try {
      do {
        isPending = false
        await refresh()
      } while (isOutdated() && !isClosed())
    } catch (err) {
      log.debug({ err }, 'Cassandra control connection not reconnected')
      if (!isClosed()) setTimeout(() => void start(), RETRY_MS).unref()
    } finally {
      isRunning = false
      if (isClosed()) onRefreshAfterClose()
    }
  }
  const isOutdated = () => isPending
  control._refresh = (hosts) => (hosts === undefined ? start() : refresh(hosts))
}
