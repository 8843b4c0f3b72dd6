// Finds the trace of a request by the edge's access log, among the spans that a collector received.
// If a busy machine lost spans, it sends another request.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from '@jest/globals'
import {
  type RawRequest,
  type RawResponse,
  headerOf,
  openConnection,
} from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import type { RunningCollector } from '../dependencies/collector.ts'
import { type ReceivedSpan, pathTo } from '../kit/received-spans.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import type { Edge } from './start-edge.ts'

/** Envoy and the pods export spans twice in this time: later, no span of a trace is missing. */
const EXPORTED_MS = 1000
/** A span that is not received by then is lost. */
const TRACE_MS_MAX = 12_000

/** An edge that traces every request, and the collector that receives its spans. */
export interface TracedEdge {
  readonly collectorNow: () => RunningCollector
  readonly edgeNow: () => Edge
}

/** The requests to send, and what their responses and traces must contain. */
interface Attempts {
  /** Sent in order until a trace matches. */
  readonly requests: readonly RawRequest[]
  readonly status: number
  /** Paths of spans, as `pathTo` renders them. */
  readonly paths: readonly string[]
  /** @default the edge sent one request to one pod: with retries, spans occur twice */
  readonly matches?: (trace: readonly ReceivedSpan[]) => boolean
}

/**
 * The first response whose trace contains every path and matches. Throws with the problem of the
 * last trace if none does.
 */
export async function findTrace(
  traced: TracedEdge,
  { requests, status, paths, matches = (trace) => attemptsOf(trace).length === 1 }: Attempts,
): Promise<{ response: RawResponse; trace: readonly ReceivedSpan[] }> {
  let failure: unknown
  for (const request of requests) {
    const response = await sendAt(traced.edgeNow().port, request)
    expect(response.status).toBe(status)
    try {
      const trace = await traceOf(traced, response, paths)
      if (matches(trace)) return { response, trace }
      failure = new Error(`the trace is:\n${trace.map((span) => pathTo(span, trace)).join('\n')}`)
    } catch (error) {
      failure = error
    }
  }
  throw new Error(`none of ${String(requests.length)} traces matches`, { cause: failure })
}

/** The trace of a request, found by the edge's access log, once it contains every path. */
async function traceOf(
  { edgeNow, collectorNow }: TracedEdge,
  response: RawResponse,
  paths: readonly string[],
): Promise<readonly ReceivedSpan[]> {
  let traceId = ''
  const isLogged = async () => {
    const lines = (await readFile(edgeNow().accessLogPath, 'utf8')).split('\n').slice(0, -1)
    const entries = lines.map((line) => JSON.parse(line) as AccessLogEntry)
    const entry = entries.find(({ request_id }) => request_id === idOf(response))
    traceId = entry?.trace_id ?? ''
    return traceId !== ''
  }
  await waitFor('the access log entry of the request', isLogged, TRACE_MS_MAX)
  const receivedPaths = () => {
    const trace = collectorNow().spans(traceId)
    return trace.map((span) => pathTo(span, trace))
  }
  const expected = ['edge: ingress', ...paths]
  const isComplete = () => expected.every((path) => receivedPaths().includes(path))
  await waitFor(`a trace of ${expected.join(', ')}`, isComplete, TRACE_MS_MAX).catch(
    (error: unknown) => {
      throw new Error(`the trace is:\n${receivedPaths().join('\n')}`, { cause: error })
    },
  )
  await sleep(EXPORTED_MS)
  return collectorNow().spans(traceId)
}

/** Sends a request to the edge at this port, from a new address. */
export async function sendAt(port: number, request: RawRequest): Promise<RawResponse> {
  const connection = await openConnection(port)
  const headers = { 'Content-Type': 'application/json', ...request.headers }
  const response = await connection.exchange(requestFrom(newAddress(), { ...request, headers }))
  connection.close()
  return response
}

/** The request id in a response. */
export function idOf(response: RawResponse): string {
  return headerOf(response, 'X-Request-Id') ?? ''
}

/** The requests that the edge sent to pods, retries included, in order. */
export function attemptsOf(trace: readonly ReceivedSpan[]): readonly ReceivedSpan[] {
  const retriesOf = ({ attributes }: ReceivedSpan) => Number(attributes['retry.count'] ?? 0)
  const attempts = trace.filter(({ name }) => /^router \w+ egress$/.test(name))
  return attempts.sort((a, b) => retriesOf(a) - retriesOf(b))
}

/** The fields of an access log entry that are read here. */
interface AccessLogEntry {
  readonly request_id: string
  readonly trace_id: string | null
}
