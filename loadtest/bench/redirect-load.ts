// The load of the benchmarks of redirects, and the response of their floors.
import type { Load } from './drive.ts'

/** The response of a floor: the service's, without the headers that node:http adds. */
export interface FloorResponse {
  readonly status: number
  /** Names and values, alternating. */
  readonly headers: readonly string[]
  readonly body: string
}

const CONNECTIONS = 64
const REQUESTS_MAX = 2_000_000
/** Headers that node:http adds to every response. */
const nodeHeaders = new Set(['date', 'connection', 'keep-alive'])

/** Requests `url` once; the floor sends the same response. */
export async function sampleResponse(url: string): Promise<FloorResponse> {
  const sample = await fetch(url, { redirect: 'manual' })
  return {
    status: sample.status,
    headers: [...sample.headers].filter(([name]) => !nodeHeaders.has(name)).flat(),
    body: await sample.text(),
  }
}

/** A load that requests the codes in turn and expects only redirects. */
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
