// What the benchmarks of redirects ask, and what their floors answer.
import type { Load } from './drive.ts'

/** What a floor answers: what ours did, less what node:http adds itself. */
export interface FloorResponse {
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string
}

const CONNECTIONS = 64
const REQUESTS_MAX = 2_000_000
/** Headers that node:http adds to the floor's answers itself. */
const nodeHeaders = new Set(['date', 'connection', 'keep-alive'])

/** Asks once, for the floor to answer the same. */
export async function sampleResponse(url: string): Promise<FloorResponse> {
  const sample = await fetch(url, { redirect: 'manual' })
  return {
    status: sample.status,
    headers: [...sample.headers].filter(([name]) => !nodeHeaders.has(name)).flat(),
    body: await sample.text(),
  }
}

/** A load that follows the codes in turn, and expects nothing but redirects. */
export function redirectLoad(
  port: number,
  codes: readonly string[],
  clients = 1,
): Omit<Load, 'msMax'> {
  const requests = codes.map((code) =>
    Buffer.from(`GET /${code} HTTP/1.1\r\nHost: s.example\r\n\r\n`),
  )
  let next = 0
  const request = () => {
    next = (next + 1) % requests.length
    return requests[next] ?? Buffer.alloc(0)
  }
  return {
    port,
    connections: Math.max(CONNECTIONS, clients),
    clients,
    request,
    expectedStatuses: [302],
    requestsMax: REQUESTS_MAX,
  }
}
