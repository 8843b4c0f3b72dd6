// An HTTP/1.1 client of one process that keeps its connections alive, as a careful client does: a
// connection that the process has closed, that failed, or that was idle too long, is never reused.
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  openConnection,
  type RawConnection,
} from './raw-http.ts'

/** For processes whose stores may fail during the test. */
const SLOW_RESPONSE_MS_MAX = 30_000
/** As in Envoy: a process resets an idle connection after 60 s, even if a request has arrived. */
const IDLE_MS_MAX = 55_000

/** Options of a client. */
export interface HttpClientOptions {
  /** The local address of its connections. */
  readonly from?: string | undefined
  /** The response timeout of requests that set none. */
  readonly msMax?: number
}

/** Sends requests to one process; any number concurrently, each on its own connection. */
export interface HttpClient {
  /** Throws if no response arrives within `msMax` ms. */
  send(request: RawRequest, msMax?: number): Promise<RawResponse>
  /** Closes every connection, also those with a request in flight, whose responses are lost. */
  close(): void
}

/** Opens a client; it connects when it sends the first request. */
export function openHttpClient(
  port: number,
  { from, msMax: defaultMsMax = SLOW_RESPONSE_MS_MAX }: HttpClientOptions = {},
): HttpClient {
  const idle: { readonly connection: RawConnection; readonly sinceMs: number }[] = []
  const open = new Set<RawConnection>()
  let isClosed = false
  const closeConnection = (connection: RawConnection) => {
    open.delete(connection)
    connection.close()
  }
  const take = async () => {
    for (const entry of idle.splice(0)) {
      const isExpired = performance.now() - entry.sinceMs > IDLE_MS_MAX
      if (isExpired || entry.connection.isClosed) closeConnection(entry.connection)
      else idle.push(entry)
    }
    const reused = idle.pop()?.connection
    if (reused !== undefined) return reused
    const connection = await openConnection(port, from)
    open.add(connection)
    if (isClosed) closeConnection(connection)
    return connection
  }
  return {
    async send(request, msMax = defaultMsMax) {
      const connection = await take()
      let isReusable = false
      try {
        const response = await connection.exchange(request, msMax)
        isReusable = headerOf(response, 'Connection') !== 'close'
        return response
      } finally {
        if (isReusable) idle.push({ connection, sinceMs: performance.now() })
        else closeConnection(connection)
      }
    },
    close() {
      isClosed = true
      idle.length = 0
      for (const connection of open) closeConnection(connection)
    },
  }
}
