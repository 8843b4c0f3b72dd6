// Asks one process over HTTP/1.1 and keeps the connections alive, as a careful client does: one
// that the process has ended, or that failed, is closed and never used again.
import { type Answer, type Ask, headerOf, openConnection, type RawConnection } from './raw-http.ts'

/** For processes whose stores may fail meanwhile. */
const PATIENT_ANSWER_MS_MAX = 30_000

/** How an asker asks. */
export interface AskerOptions {
  /** The address that it comes from. */
  readonly from?: string | undefined
  /** How long it waits for an answer, unless told with the request. */
  readonly msMax?: number
}

/** Asks one process; any number of requests at once, each on a connection of its own. */
export interface Asker {
  /** Throws where no answer comes within `msMax` ms. */
  ask(ask: Ask, msMax?: number): Promise<Answer>
  /** Ends every connection, also one whose answer is awaited; nothing is answered after it. */
  close(): void
}

/** Opens one; no connection is made before the first request. */
export function openAsker(
  port: number,
  { from, msMax: usualMsMax = PATIENT_ANSWER_MS_MAX }: AskerOptions = {},
): Asker {
  const idle: RawConnection[] = []
  const open = new Set<RawConnection>()
  let isClosed = false
  const end = (connection: RawConnection) => {
    open.delete(connection)
    connection.close()
  }
  const take = async () => {
    for (const connection of idle.splice(0)) {
      if (connection.isEnded) end(connection)
      else idle.push(connection)
    }
    const kept = idle.pop()
    if (kept !== undefined) return kept
    const connection = await openConnection(port, from)
    open.add(connection)
    if (isClosed) end(connection)
    return connection
  }
  return {
    async ask(ask, msMax = usualMsMax) {
      const connection = await take()
      let isKept = false
      try {
        const answer = await connection.exchange(ask, msMax)
        isKept = headerOf(answer, 'Connection') !== 'close'
        return answer
      } finally {
        if (isKept) idle.push(connection)
        else end(connection)
      }
    },
    close() {
      isClosed = true
      idle.length = 0
      for (const connection of open) end(connection)
    },
  }
}
