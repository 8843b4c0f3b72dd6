// How failures to reach a dependency are logged after the start. A dependency that is installed
// together with this process may become available later: for a limited time, its failures are not
// warnings.
import { monotonicMs } from './deadline.ts'

/** How long a dependency that is installed together with this process may take to start. */
const START_MS_MAX = 60_000
/**
 * How long Cassandra may take to start, and its schema to exist. Cassandra takes a minute on an
 * idle machine. The edge waits as long for its services (drain/wait-for-services.ts).
 */
export const SLOW_START_MS_MAX = 300_000

/** The time after the start in which a dependency not reached before causes no warning. */
export interface StartPeriod {
  /** The level of a failure. Once it is `warn`, it remains `warn`. */
  levelOf(isUnreachable: boolean): 'info' | 'warn'
  /** Called once the dependency has been reached. */
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
/** The error message of a Unix socket that does not exist. */
const NO_SOCKET = /^connect ENOENT\b/

/**
 * Whether an error means that no connection was opened. A connection that the server closes is not
 * included, because a server also closes connections if TLS settings differ.
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
