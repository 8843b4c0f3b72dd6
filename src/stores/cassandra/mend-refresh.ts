// A mend of the driver (4.10): when it loses its control connection twice at once, two refreshes
// run side by side, one takes the connection from under the other, and the rejection of that one is
// nobody's: it would end the process. Here one runs at a time, and one that fails is begun again.
// One that is under way while its client is shut down finds nodes that nobody would let go.
import type { Log } from '../../telemetry/log.ts'

/** The part of the driver's client that is mended. */
export interface RefreshingControl {
  /** Without hosts a new refresh; with hosts the next step of the one under way. */
  _refresh(hosts?: unknown): Promise<void>
}

const AGAIN_MS = 500

/** What mending needs. */
export interface MendRefreshDeps {
  readonly log: Pick<Log, 'debug'>
  /** Ends the repeats. */
  readonly isClosed: () => boolean
  /** Told when a refresh has ended after that: what it has found must be let go. */
  readonly onLate: () => void
}

/** Mends one client's control connection. */
export function mendRefresh(
  control: RefreshingControl,
  { log, isClosed, onLate }: MendRefreshDeps,
): void {
  const refresh = control._refresh.bind(control)
  let isRunning = false
  let isWanted = false
  const begin = async (): Promise<void> => {
    if (isRunning) {
      isWanted = true // what it has found may be gone again
      return
    }
    isRunning = true
    try {
      do {
        isWanted = false
        await refresh()
      } while (isAsked() && !isClosed())
    } catch (err) {
      log.debug({ err }, 'the control connection was not renewed')
      if (!isClosed()) setTimeout(() => void begin(), AGAIN_MS).unref()
    } finally {
      isRunning = false
      if (isClosed()) onLate()
    }
  }
  const isAsked = () => isWanted
  control._refresh = (hosts) => (hosts === undefined ? begin() : refresh(hosts))
}
