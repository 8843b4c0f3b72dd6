// Idle connections, and headers that arrive a byte at a time, at a real Envoy with the product's
// bootstrap: other clients get responses, slow headers get 408, and memory is bounded.
import { type Edge, startEdge, startPod } from '../kit/edge/edge.ts'
import { openConnection, type RawConnection } from '../kit/http/raw-http.ts'
import { residentBytes } from '../kit/resident-bytes.ts'
import { freePort } from '../dependencies/free-ports.ts'

const FULL_SIZE = { idle: 10_000, slow: 500, requests: 5000 }
/** Connections opened concurrently; more would overflow the listen backlog. */
const OPENING = 256
const SENDERS = 8
const BYTE_EVERY_MS = 100
/** The memory that an open connection with empty buffers may use in Envoy. */
const BYTES_EACH_MAX = 64 * 1024
const TIMEOUT_MS_MAX = 10_000
const slowHeaders = 'GET /a HTTP/1.1\r\nHost: x\r\nX-Slow: '

/** The result of a run. */
export interface IdleOutcome {
  /** Open connections in Envoy after all are opened. */
  readonly open: number
  /** Requests with slow headers that got 408. */
  readonly timedOut: number
  readonly slowestMs: number
  readonly bytesBefore: number
  readonly bytesAfter: number
}

/** The number of connections; `requests` are those of other clients meanwhile. */
interface Size {
  readonly idle: number
  readonly slow: number
  readonly requests: number
}

/** Opens them to an edge with a short timeout for headers. Throws on the first violation. */
export async function holdIdleConnections(edge: Edge, size: Size): Promise<IdleOutcome> {
  await sendMany(edge, size.requests) // so that memory for serving is already allocated
  const bytesBefore = await residentBytes(edge.envoy.pid)
  const idle = await openMany(edge.port, size.idle)
  const slow = await openMany(edge.port, size.slow)
  const stopDripping = drip(slow)
  try {
    const timeouts = slow.map((connection) => connection.nextResponse({ msMax: TIMEOUT_MS_MAX }))
    const slowestMs = await sendMany(edge, size.requests)
    const timedOut = (await Promise.all(timeouts)).filter(({ status }) => status === 408).length
    if (timedOut < size.slow)
      throw new Error(`${timedOut} of ${size.slow} requests with slow headers got 408`)
    const open = await edge.envoy.stat('^http.edge.downstream_cx_active$')
    if (open < size.idle) throw new Error(`${open} of ${size.idle} connections are open`)
    const bytesAfter = await residentBytes(edge.envoy.pid)
    if (bytesAfter - bytesBefore > size.idle * BYTES_EACH_MAX) {
      throw new Error(`Envoy has grown from ${bytesBefore} to ${bytesAfter} bytes`)
    }
    return { open, timedOut, slowestMs, bytesBefore, bytesAfter }
  } finally {
    stopDripping()
    for (const connection of [...idle, ...slow]) connection.close()
  }
}

async function openMany(port: number, count: number): Promise<RawConnection[]> {
  const opened: RawConnection[] = []
  while (opened.length < count) {
    const next = Math.min(OPENING, count - opened.length)
    opened.push(...(await Promise.all(Array.from({ length: next }, () => openConnection(port)))))
  }
  return opened
}

/** Sends headers that never complete, a byte at a time. */
function drip(connections: readonly RawConnection[]): () => void {
  for (const connection of connections) connection.send(slowHeaders)
  const timer = setInterval(() => {
    for (const connection of connections) {
      if (!connection.isClosed) connection.send('x')
    }
  }, BYTE_EVERY_MS)
  return () => {
    clearInterval(timer)
  }
}

/** Requests of other clients, each on its own connection; resolves to the longest time. */
async function sendMany(edge: Edge, count: number): Promise<number> {
  let requests = 0
  let slowestMs = 0
  const sendUntilDone = async () => {
    while (requests < count) {
      const client = `198.51.100.${requests++ % 250}`
      const startedMs = performance.now()
      const { status } = await edge.send({ path: '/a', client })
      if (status !== 302) throw new Error(`a request got ${status}`)
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sendUntilDone))
  return slowestMs
}

/** Runs the test at full size. */
export async function run({ log }: { log: (line: string) => void }): Promise<void> {
  const pod = await startPod()
  const limiterPorts = [await freePort()] // no limiter listens, so that the local limits apply
  const settings = { requestHeadersTimeout: '2s', redirectBurst: 1e6, redirectPerSecond: 1e6 }
  const edge = await startEdge({ podPort: pod.port, limiterPorts, settings })
  try {
    const outcome = await holdIdleConnections(edge, FULL_SIZE)
    const { open, timedOut, slowestMs, bytesBefore, bytesAfter } = outcome
    const [before, after] = [bytesBefore, bytesAfter].map((bytes) => (bytes / 2 ** 20).toFixed(0))
    log(`${open} connections open, ${timedOut} × 408; Envoy had ${before} MiB, then ${after}`)
    log(`${FULL_SIZE.requests} requests of other clients, the slowest ${slowestMs.toFixed(0)} ms`)
  } finally {
    await edge.stop()
    pod.close()
  }
}
