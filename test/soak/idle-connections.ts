// Idle connections, and headers that arrive a byte at a time, before a real Envoy with the
// product's bootstrap: other clients are served, slow headers get 408, and memory is bounded.
import { type Edge, startEdge, startPod } from '../kit/edge/edge.ts'
import { openConnection, type RawConnection } from '../kit/http/raw-http.ts'
import { residentBytes } from '../kit/resident-bytes.ts'
import { freePort } from '../dependencies/free-ports.ts'

const FULL_SIZE = { idle: 10_000, slow: 500, asked: 5000 }
/** Opened at once: more would overflow what the kernel lets wait. */
const OPENING = 256
const ASKING = 8
const BYTE_EVERY_MS = 100
/** What Envoy may take for a connection that is open, its buffers empty. */
const BYTES_EACH_MAX = 64 * 1024
const CUT_MS_MAX = 10_000
const slowHead = 'GET /a HTTP/1.1\r\nHost: x\r\nX-Slow: '

/** What a run was like. */
export interface IdleOutcome {
  /** Connections that Envoy holds open once all are made. */
  readonly open: number
  /** Slow heads that were answered 408. */
  readonly cut: number
  readonly slowestMs: number
  readonly bytesBefore: number
  readonly bytesAfter: number
}

/** How many of each. `asked` are the requests of others meanwhile. */
interface Size {
  readonly idle: number
  readonly slow: number
  readonly asked: number
}

/** Opens them before an edge whose time for a head is short. Throws what it found. */
export async function holdIdleConnections(edge: Edge, size: Size): Promise<IdleOutcome> {
  await askMany(edge, size.asked) // what serving itself takes is taken before
  const bytesBefore = await residentBytes(edge.envoy.pid)
  const idle = await openMany(edge.port, size.idle)
  const slow = await openMany(edge.port, size.slow)
  const stopDripping = drip(slow)
  try {
    const cutting = slow.map((connection) => connection.nextResponse({ msMax: CUT_MS_MAX }))
    const slowestMs = await askMany(edge, size.asked)
    const cut = (await Promise.all(cutting)).filter(({ status }) => status === 408).length
    if (cut < size.slow) throw new Error(`${cut} of ${size.slow} slow heads were cut`)
    const open = await edge.envoy.stat('^http.edge.downstream_cx_active$')
    if (open < size.idle) throw new Error(`${open} of ${size.idle} connections are open`)
    const bytesAfter = await residentBytes(edge.envoy.pid)
    if (bytesAfter - bytesBefore > size.idle * BYTES_EACH_MAX) {
      throw new Error(`Envoy has grown from ${bytesBefore} to ${bytesAfter} bytes`)
    }
    return { open, cut, slowestMs, bytesBefore, bytesAfter }
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

/** Sends heads without an end, a byte at a time. */
function drip(connections: readonly RawConnection[]): () => void {
  for (const connection of connections) connection.send(slowHead)
  const timer = setInterval(() => {
    for (const connection of connections) {
      if (!connection.isClosed) connection.send('x')
    }
  }, BYTE_EVERY_MS)
  return () => {
    clearInterval(timer)
  }
}

/** Requests of others, each on a connection of its own; resolves to the slowest one's time. */
async function askMany(edge: Edge, count: number): Promise<number> {
  let asked = 0
  let slowestMs = 0
  const ask = async () => {
    while (asked < count) {
      const client = `198.51.100.${asked++ % 250}`
      const startedMs = performance.now()
      const { status } = await edge.send({ path: '/a', client })
      if (status !== 302) throw new Error(`a request was answered ${status}`)
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
    }
  }
  await Promise.all(Array.from({ length: ASKING }, ask))
  return slowestMs
}

/** The full size. */
export async function storm({ log }: { log: (line: string) => void }): Promise<void> {
  const pod = await startPod()
  const limiterPorts = [await freePort()] // nobody listens: limits are the edge's own
  const settings = { requestHeadersTimeout: '2s', redirectBurst: 1e6, redirectPerSecond: 1e6 }
  const edge = await startEdge({ podPort: pod.port, limiterPorts, settings })
  try {
    const outcome = await holdIdleConnections(edge, FULL_SIZE)
    const { open, cut, slowestMs, bytesBefore, bytesAfter } = outcome
    const [before, after] = [bytesBefore, bytesAfter].map((bytes) => (bytes / 2 ** 20).toFixed(0))
    log(`${open} connections open, ${cut} slow heads cut; Envoy had ${before} MiB, has ${after}`)
    log(`${FULL_SIZE.asked} requests of others, the slowest ${slowestMs.toFixed(0)} ms`)
  } finally {
    await edge.stop()
    pod.close()
  }
}
