// Mutated sequences of HTTP/2 frames against a gRPC listener in its own process, while a valid
// client calls: the process survives, its memory is bounded, and each valid call gets a response.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createTestClient } from '../kit/ratelimit/grpc-client.ts'
import { fuzzConnection } from '../kit/ratelimit/grpc-fuzz.ts'
import { createRandom } from '../kit/random.ts'
import { residentBytes } from '../kit/resident-bytes.ts'
import { withinDeadline } from '../kit/wait-for.ts'

const WORKERS = 8
const FULL_CONNECTIONS = 1_000_000
const RSS_BYTES_MAX = 384 * 1024 * 1024
const program = fileURLToPath(new URL('../kit/ratelimit/grpc-child.ts', import.meta.url))

/** The result of a run. */
export interface Http2FuzzCounts {
  connections: number
  valid: number
  responses: number
  legitimate: number
  readonly byCode: Map<string, number>
}

/** Opens `connections` connections to its own listener. Throws on the first violation. */
export async function fuzzHttp2(given: {
  readonly connections: number
  readonly seed: number
}): Promise<Http2FuzzCounts> {
  const counts = { connections: 0, valid: 0, responses: 0, legitimate: 0, byCode: new Map() }
  const child = spawn(process.execPath, [program])
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors = (errors + text.toString()).slice(0, 10_000)))
  const exited = once(child, 'exit')
  try {
    const [line] = (await withinDeadline('the port', once(child.stdout, 'data'))) as [Buffer]
    const port = Number(line.toString())
    const state = { isOver: false }
    const legitimate = callOften(port, state, counts)
    const workers = Array.from({ length: WORKERS }, (_, i) =>
      work({ port, connections: given.connections / WORKERS, seed: given.seed + i, counts }),
    )
    await Promise.all(workers).finally(() => (state.isOver = true))
    await legitimate
    await checkMemory(child)
  } finally {
    child.stdin.end()
  }
  const [code] = (await withinDeadline('the exit', exited)) as [number | null]
  if (code !== 0 || errors !== '') throw new Error(`it exited with ${String(code)}: ${errors}`)
  return counts
}

async function work(given: {
  port: number
  connections: number
  seed: number
  counts: Http2FuzzCounts
}): Promise<void> {
  const { port, seed, counts } = given
  const random = createRandom(seed)
  for (let i = 0; i < given.connections; i += 1) {
    const { isValid, responses, code } = await fuzzConnection(port, random)
    counts.connections += 1
    counts.responses += responses
    if (isValid) counts.valid += 1
    const key = code === undefined ? 'no GOAWAY' : `GOAWAY ${String(code)}`
    counts.byCode.set(key, (counts.byCode.get(key) ?? 0) + 1)
  }
}

async function callOften(
  port: number,
  state: { readonly isOver: boolean },
  counts: Http2FuzzCounts,
): Promise<void> {
  const client = createTestClient(`127.0.0.1:${String(port)}`)
  const descriptors = [{ entries: [{ key: 'k', value: 'v' }] }]
  try {
    while (!state.isOver) {
      const { overallCode } = await client.call({ domain: 'edge', descriptors })
      if (overallCode !== 'OK') throw new Error(`a legitimate call got ${String(overallCode)}`)
      counts.legitimate += 1
    }
  } finally {
    client.close()
  }
}

async function checkMemory({ pid = 0 }: ChildProcess): Promise<void> {
  const bytes = await residentBytes(pid)
  if (bytes > RSS_BYTES_MAX) throw new Error(`it has ${String(bytes)} bytes of resident memory`)
}

/** The counts on one line. */
export function renderHttp2FuzzCounts(counts: Http2FuzzCounts): string {
  const codes = [...counts.byCode].sort().map(([code, count]) => `${code}: ${String(count)}`)
  const sent = `${String(counts.connections)} connections (${String(counts.valid)} unchanged)`
  const calls = `${String(counts.legitimate)} legitimate calls`
  return `${sent}, ${String(counts.responses)} responses, ${calls}; ${codes.join(', ')}`
}

/** Runs the test at full size. */
export async function run({ seed, log }: { seed: number; log: (line: string) => void }) {
  log(renderHttp2FuzzCounts(await fuzzHttp2({ connections: FULL_CONNECTIONS, seed })))
}
