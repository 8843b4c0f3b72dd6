// How failures to reach a dependency are logged after the start. A dependency that is installed
// together with this process may become available later: for a limited time that is no warning.
import { monotonicMs } from './deadline.ts'

/** A dependency that is installed together with this process may start so much later. */
const START_MS_MAX = 60_000

/** The time after the start in which a dependency that was never reached causes no warning. */
export interface StartPeriod {
  /** The level of a failure. Once it is `warn`, it remains `warn`. */
  levelOf(isUnreachable: boolean): 'info' | 'warn'
  /** Called when the dependency was reached. */
  end(): void
}

/** Starts the period for one dependency; it lasts at most `msMax` milliseconds. */
export function createStartPeriod(msMax = START_MS_MAX): StartPeriod {
  const startedMs = monotonicMs()
  let isStarting = true
  return {
    levelOf(isUnreachable) {
      isStarting &&= isUnreachable && monotonicMs() - startedMs < msMax
      return isStarting ? 'info' : 'warn'
    },
    end() {
      isStarting = false
    },
  }
}

/** Node.js's codes of a server that does not respond, or whose name cannot be resolved. */
const UNREACHABLE =
  /\b(?:ECONNREFUSED|EHOSTDOWN|EHOSTUNREACH|ENETDOWN|ENETUNREACH|ENOTFOUND|EAI_[A-Z]+|ETIMEDOUT)\b/
/** The same for a Unix socket. */
const NO_SOCKET = /^connect ENOENT\b/

/**
 * Whether an error means that no connection was opened. Not included: a connection that the server
 * closes, because it does that also if TLS settings differ.
 */
export function isUnreachable({
  code,
  message,
}: {
  readonly code?: unknown
  readonly message: string
}): boolean {
  return UNREACHABLE.test(`${String(code)} ${message}`) || NO_SOCKET.test(message)
}
