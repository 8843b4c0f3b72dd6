// One request, one trace: from Envoy to Cassandra and, by the limiter, to Redis, as a collector of
// OpenTelemetry received it. What failed and what was tried again is in it, and the logs name it.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createAsk } from '../component/client.ts'
import { type Answer, headerOf, openConnection } from '../component/raw-http.ts'
import { waitFor } from '../component/wait-for.ts'
import type { RunningCollector } from '../parts/collector.ts'
import { type ReceivedSpan, wayTo } from '../parts/received-spans.ts'
import { askFrom, newAddress } from './edge-client.ts'
import { makeLinks, untilWhole } from './stack-state.ts'
import type { Edge } from './start-edge.ts'
import type { LimiterPod, ServingPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 120_000
/** Envoy sends its spans every five seconds. */
const TRACE_MS_MAX = 30_000
const TRIES_MAX = 50
const createOne = createAsk({ long_url: 'https://example.com/traced' })

/** The stack, the collector, and an edge that traces everything. */
interface Traced {
  readonly stackNow: () => Stack
  readonly collectorNow: () => RunningCollector
  readonly edgeNow: () => Edge
}

/** Tests of it. */
export function describeTracing(stackNow: () => Stack, collectorNow: () => RunningCollector): void {
  describe('tracing', () => {
    let edge: Edge
    const traced = { stackNow, collectorNow, edgeNow: () => edge }

    beforeAll(async () => {
      await untilWhole(stackNow())
      edge = await stackNow().startEdge({ isTraced: true })
    }, TEST_MS_MAX)

    afterAll(async () => {
      await edge.envoy.stop()
      await edge.companion.stop() // it stays as long as there is an Envoy to drain
    }, TEST_MS_MAX)

    testWays(traced)
    testFaults(traced)
    testUntraced(traced)
  })
}

/** Where the spans of a request stand. */
function testWays(traced: Traced): void {
  test(
    'a create goes from Envoy to the limiter’s Redis, and to Cassandra, in one trace',
    async () => {
      const answer = await ask(traced, createOne)
      expect(answer.status).toBe(201)
      const creates = 'edge: ingress > edge: router create egress > create: POST /v1/urls'
      const [service, call] = ['envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit']
      const asks = `edge: ingress > edge: async ${service}.${call} egress`
      const method = `${service}/${call}`
      const trace = await traceOf(traced, answer, [
        `${asks} > ratelimit: ${method} > ratelimit: EVALSHA`,
        `${creates} > create: INSERT links`,
        `${creates} > create: DEL`,
      ])
      const pod = spanOf(trace, 'POST /v1/urls')
      expect(pod).toMatchObject({ kind: 'server', isError: false })
      expect(pod.facts).toMatchObject({
        'http.route': '/v1/urls',
        'http.response.status_code': '201',
        'http.request.header.x-request-id': expect.stringContaining(idOf(answer)),
      })
      expect(spanOf(trace, 'INSERT links')).toMatchObject({
        kind: 'client',
        facts: { 'db.system.name': 'cassandra', 'curtail.cassandra.nodes_tried': '1' },
      })
      expect(spanOf(trace, method)).toMatchObject({ kind: 'server' })
      expect(JSON.stringify(trace)).not.toContain('example.com/traced')
    },
    TEST_MS_MAX,
  )

  test(
    'a cold redirect goes from Envoy to Redis, and to Cassandra, in one trace',
    async () => {
      const [code = ''] = await makeLinks(traced.stackNow(), 1)
      const answer = await ask(traced, { path: `/${code}` })
      expect(answer.status).toBe(302)
      const follows = 'edge: ingress > edge: router redirect egress > redirect: GET /{code}'
      const trace = await traceOf(traced, answer, [
        `${follows} > redirect: GET`,
        `${follows} > redirect: SELECT links`,
        `${follows} > redirect: EVALSHA`,
      ])
      const ways = trace.map((span) => wayTo(span, trace))
      expect(ways.filter((way) => way.includes('(nobody)'))).toEqual([])
      expect(spanOf(trace, 'ingress').facts).toMatchObject({ 'http.status_code': '302' })
      const { redirects, limiters } = traced.stackNow()
      const named = await exemplarsOf([...redirects, ...limiters], trace[0]?.traceId ?? '')
      expect(named).toEqual([
        'curtail_cassandra_call_duration_seconds',
        'curtail_http_request_duration_seconds',
        'ratelimit_service_response_time_seconds',
      ])
    },
    TEST_MS_MAX,
  )
}

/** What went wrong, and what was tried again. */
function testFaults(traced: Traced): void {
  test(
    'an attempt that failed and its retry are spans of their own',
    async () => {
      const stack = traced.stackNow()
      const [code = ''] = await makeLinks(stack, 1)
      await stack.redirects[0]?.kill()
      try {
        let trace: readonly ReceivedSpan[] = []
        const isRetried = async () => {
          const answer = await ask(traced, { path: `/${code}` })
          expect(answer.status).toBe(302)
          trace = await traceOf(traced, answer, [])
          return trace.some(({ facts }) => facts['retry.count'] === '1')
        }
        for (let tries = 0; tries < TRIES_MAX && !(await isRetried()); tries++);
        const attempts = trace.filter(({ name }) => name === 'router redirect egress')
        const [first, second] = attempts.sort((a, b) => retriesOf(a) - retriesOf(b))
        expect(first?.facts).toMatchObject({ error: 'true', response_flags: 'UF' })
        expect(second?.facts).toMatchObject({ 'retry.count': '1', 'http.status_code': '302' })
        expect(attempts).toHaveLength(2)
      } finally {
        await stack.redirects[0]?.restart()
        await untilWhole(stack)
      }
    },
    TEST_MS_MAX,
  )

  test(
    'a cache that is away is an error of its span, and of no other',
    async () => {
      const stack = traced.stackNow()
      const codes = await makeLinks(stack, TRIES_MAX)
      await stack.cache.kill()
      try {
        let trace: readonly ReceivedSpan[] = []
        const follows = 'edge: ingress > edge: router redirect egress > redirect: GET /{code}'
        const ways = [`${follows} > redirect: GET`, `${follows} > redirect: SELECT links`]
        // On a busy machine the edge may try a pod again: its trace has these spans twice.
        const isTriedOnce = async (code: string) => {
          const answer = await ask(traced, { path: `/${code}` })
          expect(answer.status).toBe(302)
          trace = await traceOf(traced, answer, ways)
          return trace.filter(({ name }) => name === 'router redirect egress').length === 1
        }
        for (const code of codes) if (await isTriedOnce(code)) break
        expect(spanOf(trace, 'GET')).toMatchObject({
          isError: true,
          facts: { 'error.type': 'not-done' },
        })
        expect(trace.filter(({ isError }) => isError)).toHaveLength(1)
      } finally {
        await stack.cache.restart()
        await untilWhole(stack)
      }
    },
    TEST_MS_MAX,
  )
}

/** Who decides what is traced. */
function testUntraced(traced: Traced): void {
  test(
    'no client decides what is traced',
    async () => {
      const { stackNow, collectorNow } = traced
      const traceId = 'ab'.repeat(16)
      const headers = { traceparent: `00-${traceId}-${'1'.repeat(16)}-01` }
      const untraced = await askAt(stackNow().port, { ...createOne, headers })
      expect(untraced.status).toBe(201)
      const answer = await ask(traced, { ...createOne, headers })
      await traceOf(traced, answer, ['edge: ingress'])
      expect(collectorNow().spans(traceId)).toEqual([])
      const firsts = collectorNow()
        .spans()
        .filter(({ parentId }) => parentId === '')
      expect(new Set(firsts.map(({ service }) => service))).toEqual(new Set(['curtail-edge']))
    },
    TEST_MS_MAX,
  )
}

function retriesOf({ facts }: ReceivedSpan): number {
  return Number(facts['retry.count'] ?? 0)
}

/** A line of the edge's log, as far as it is read here. */
interface AccessLine {
  readonly request_id: string
  readonly trace_id: string | null
}

type Asked = Parameters<typeof askFrom>[1]

/** Asks the edge that traces, as a client of its own. */
function ask({ edgeNow }: Traced, request: Asked): Promise<Answer> {
  return askAt(edgeNow().port, request)
}

async function askAt(port: number, request: Asked): Promise<Answer> {
  const connection = await openConnection(port)
  const headers = { 'Content-Type': 'application/json', ...request.headers }
  const answer = await connection.exchange(askFrom(newAddress(), { ...request, headers }))
  connection.close()
  return answer
}

function idOf(answer: Answer): string {
  return headerOf(answer, 'X-Request-Id') ?? ''
}

/** The trace of a request, found by the edge's log, once it has a span at the end of each way. */
async function traceOf(
  { edgeNow, collectorNow }: Traced,
  answer: Answer,
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
    return trace.map((span) => wayTo(span, trace))
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

/** The histograms of these pods that name the trace. */
async function exemplarsOf(
  pods: readonly (ServingPod | LimiterPod)[],
  traceId: string,
): Promise<readonly string[]> {
  const headers = { Accept: 'application/openmetrics-text' }
  const pages = pods.map(async (pod) => {
    const url = `http://127.0.0.1:${String(pod.now().ready['adminPort'])}/metrics`
    return (await fetch(url, { headers, signal: AbortSignal.timeout(TRACE_MS_MAX) })).text()
  })
  const lines = (await Promise.all(pages)).join('').split('\n')
  const naming = lines.filter((line) => line.includes(`# {trace_id="${traceId}"}`))
  return [...new Set(naming.map((line) => line.replace(/_bucket\{.*/, '')))].sort()
}

/** The one span of this name. */
function spanOf(trace: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [span, other] = trace.filter((one) => one.name === name)
  if (span === undefined || other !== undefined) {
    throw new Error(`not one span ${name} in:\n${trace.map((one) => wayTo(one, trace)).join('\n')}`)
  }
  return span
}
