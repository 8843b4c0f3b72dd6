// Finds the trace of a request by the edge's access log, among the spans that a collector received.
// Sends another request if a busy machine lost spans.
import { readFile } from 'node:fs/promises'
import { expect } from '@jest/globals'
import { type RawResponse, headerOf, openConnection } from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import type { RunningCollector } from '../dependencies/collector.ts'
import { type ReceivedSpan, pathTo } from '../kit/received-spans.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Edge } from './start-edge.ts'

/** Envoy sends its spans every five seconds; those that are lost are not waited for longer. */
const TRACE_MS_MAX = 12_000

/** An edge that traces everything, and where its spans go. */
export interface TracedEdge {
  readonly collectorNow: () => RunningCollector
  readonly edgeNow: () => Edge
}

/** A request. */
export type Asked = Parameters<typeof requestFrom>[1]

/** The requests to send until a trace matches. */
interface Tries {
  /** Each is tried once. */
  readonly asks: readonly Asked[]
  readonly status: number
  readonly ways: readonly string[]
  /** @default where the edge asked one pod, once: a trace of several has spans twice */
  readonly isWanted?: (trace: readonly ReceivedSpan[]) => boolean
}

/**
 * The first answer whose trace has a span at the end of each way and is as it is wanted. Throws
 * what was missing in the last one where there is none.
 */
export async function findTrace(
  traced: TracedEdge,
  { asks, status, ways, isWanted = (trace) => attemptsOf(trace).length === 1 }: Tries,
): Promise<{ answer: RawResponse; trace: readonly ReceivedSpan[] }> {
  let fault: unknown
  for (const request of asks) {
    const answer = await askAt(traced.edgeNow().port, request)
    expect(answer.status).toBe(status)
    try {
      const trace = await traceOf(traced, answer, ways)
      if (isWanted(trace)) return { answer, trace }
      fault = new Error(`there is:\n${trace.map((span) => pathTo(span, trace)).join('\n')}`)
    } catch (error) {
      fault = error
    }
  }
  throw new Error('no trace of many was as it is wanted', { cause: fault })
}

/** The trace of a request, found by the edge's log, once it has a span at the end of each way. */
async function traceOf(
  { edgeNow, collectorNow }: TracedEdge,
  answer: RawResponse,
  ways: readonly string[],
): Promise<readonly ReceivedSpan[]> {
  let traceId = ''
  const isLogged = async () => {
    const lines = (await readFile(edgeNow().accessLogPath, 'utf8')).split('\n').slice(0, -1)
    const entries = lines.map((line) => JSON.parse(line) as AccessLine)
    const entry = entries.find(({ request_id }) => request_id === idOf(answer))
    traceId = entry?.trace_id ?? ''
    return traceId !== ''
  }
  await waitFor('the line of the request', isLogged, TRACE_MS_MAX)
  const seen = () => {
    const trace = collectorNow().spans(traceId)
    return trace.map((span) => pathTo(span, trace))
  }
  const wanted = ['edge: ingress', ...ways]
  const isWhole = () => wanted.every((way) => seen().includes(way))
  await waitFor(`a trace of ${wanted.join(', ')}`, isWhole, TRACE_MS_MAX).catch(
    (error: unknown) => {
      throw new Error(`there is:\n${seen().join('\n')}`, { cause: error })
    },
  )
  return collectorNow().spans(traceId)
}

/** Asks the edge at this port, as a client of its own. */
export async function askAt(port: number, request: Asked): Promise<RawResponse> {
  const connection = await openConnection(port)
  const headers = { 'Content-Type': 'application/json', ...request.headers }
  const answer = await connection.exchange(requestFrom(newAddress(), { ...request, headers }))
  connection.close()
  return answer
}

/** The id of the request that was answered. */
export function idOf(answer: RawResponse): string {
  return headerOf(answer, 'X-Request-Id') ?? ''
}

/** The edge's attempts at a pod, in their order. */
export function attemptsOf(trace: readonly ReceivedSpan[]): readonly ReceivedSpan[] {
  const retriesOf = ({ facts }: ReceivedSpan) => Number(facts['retry.count'] ?? 0)
  const attempts = trace.filter(({ name }) => /^router \w+ egress$/.test(name))
  return attempts.sort((a, b) => retriesOf(a) - retriesOf(b))
}

/** A line of the edge's log, as far as it is read here. */
interface AccessLine {
  readonly request_id: string
  readonly trace_id: string | null
}
