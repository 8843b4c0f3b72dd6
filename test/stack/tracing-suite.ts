// One request, one trace: from Envoy to Cassandra and, through the limiter, to Redis, as an
// OpenTelemetry collector received it. Failures and retries are spans, and the logs have its id.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createLinkRequest } from '../kit/http/client.ts'
import type { RunningCollector } from '../dependencies/collector.ts'
import { type ReceivedSpan, pathTo } from '../kit/received-spans.ts'
import { askAt, type Asked, attemptsOf, idOf, findTrace, type TracedEdge } from './find-trace.ts'
import { makeLinks, untilWhole } from './stack-state.ts'
import type { Edge } from './start-edge.ts'
import type { LimiterPod, ServingPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 300_000
const SCRAPE_MS_MAX = 30_000
/** On a machine that stalls parts are given up before they have begun, and spans are lost. */
const TRIES_MAX = 20
const createOne = createLinkRequest({ long_url: 'https://example.com/traced' })

/** The stack, and an edge of it that traces everything. */
interface Traced extends TracedEdge {
  readonly stackNow: () => Stack
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
      await edge.sidecar.stop()
    }, TEST_MS_MAX)

    testWays(traced)
    testFaults(traced)
    testUntraced(traced)
  })
}

/** The gRPC method of the limiter. */
const service = 'envoy.service.ratelimit.v3.RateLimitService'
const method = `${service}/ShouldRateLimit`
const limits =
  `edge: ingress > edge: async ${service}.ShouldRateLimit egress > ` +
  `ratelimit: ${method} > ratelimit: EVALSHA`

/** The position of each span in the trace. */
function testWays(traced: Traced): void {
  test(
    'a create is one trace, from Envoy to the limiter’s Redis and to Cassandra',
    async () => {
      const creates = 'edge: ingress > edge: router create egress > create: POST /v1/urls'
      const { answer, trace } = await findTrace(traced, {
        asks: manyOf(createOne),
        status: 201,
        ways: [limits, `${creates} > create: INSERT links`, `${creates} > create: DEL`],
      })
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
    'a redirect that is not cached is one trace, from Envoy to Redis and to Cassandra',
    async () => {
      const follows = 'edge: ingress > edge: router redirect egress > redirect: GET /{code}'
      const parts = ['GET', 'SELECT links', 'EVALSHA']
      const { trace } = await findTrace(traced, {
        asks: await followsOf(traced.stackNow()),
        status: 302,
        ways: [limits, ...parts.map((part) => `${follows} > redirect: ${part}`)],
      })
      const ways = trace.map((span) => pathTo(span, trace))
      expect(ways.filter((way) => way.includes('(no parent)'))).toEqual([])
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

/** Failures and retries. */
function testFaults(traced: Traced): void {
  test(
    'a failed attempt and its retry are separate spans',
    async () => {
      const stack = traced.stackNow()
      const [code = ''] = await makeLinks(stack, 1)
      await stack.redirects[0]?.kill()
      try {
        const { trace } = await findTrace(traced, {
          asks: manyOf({ path: `/${code}` }),
          status: 302,
          ways: [],
          // The edge chooses the dead pod first or not; it gives up a pod that is slow, too.
          isWanted: (spans) => {
            const attempts = attemptsOf(spans)
            return attempts.length === 2 && attempts[0]?.facts['response_flags'] === 'UF'
          },
        })
        const attempts = attemptsOf(trace)
        const [first, second] = attempts
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
    'an unavailable cache is an error of its own span only',
    async () => {
      const stack = traced.stackNow()
      const asks = await followsOf(stack)
      await stack.cache.kill()
      try {
        const follows = 'edge: ingress > edge: router redirect egress > redirect: GET /{code}'
        const { trace } = await findTrace(traced, {
          asks,
          status: 302,
          ways: [`${follows} > redirect: GET`, `${follows} > redirect: SELECT links`],
        })
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

/** The decision what is traced. */
function testUntraced(traced: Traced): void {
  test(
    'the traceparent of a client does not decide what is traced',
    async () => {
      const { stackNow, collectorNow } = traced
      const traceId = 'ab'.repeat(16)
      const headers = { traceparent: `00-${traceId}-${'1'.repeat(16)}-01` }
      const untraced = await askAt(stackNow().port, { ...createOne, headers })
      expect(untraced.status).toBe(201)
      const asks = manyOf({ ...createOne, headers })
      await findTrace(traced, { asks, status: 201, ways: [] })
      expect(collectorNow().spans(traceId)).toEqual([])
      const firsts = collectorNow()
        .spans()
        .filter(({ parentId }) => parentId === '')
      expect(new Set(firsts.map(({ service }) => service))).toEqual(new Set(['curtail-edge']))
    },
    TEST_MS_MAX,
  )
}

/** As many requests as there are tries, all the same. */
function manyOf(request: Asked): readonly Asked[] {
  return new Array<Asked>(TRIES_MAX).fill(request)
}

/** As many, each for a link that no client has resolved. */
async function followsOf(stack: Stack): Promise<readonly Asked[]> {
  return (await makeLinks(stack, TRIES_MAX)).map((code) => ({ path: `/${code}` }))
}

/** The histograms of these pods that name the trace. */
async function exemplarsOf(
  pods: readonly (ServingPod | LimiterPod)[],
  traceId: string,
): Promise<readonly string[]> {
  const headers = { Accept: 'application/openmetrics-text' }
  const pages = pods.map(async (pod) => {
    const url = `http://127.0.0.1:${String(pod.now().ready['adminPort'])}/metrics`
    return (await fetch(url, { headers, signal: AbortSignal.timeout(SCRAPE_MS_MAX) })).text()
  })
  const lines = (await Promise.all(pages)).join('').split('\n')
  const naming = lines.filter((line) => line.includes(`# {trace_id="${traceId}"}`))
  return [...new Set(naming.map((line) => line.replace(/_bucket\{.*/, '')))].sort()
}

/** The one span of this name. */
function spanOf(trace: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [span, other] = trace.filter((one) => one.name === name)
  if (span === undefined || other !== undefined) {
    throw new Error(
      `not one span ${name} in:\n${trace.map((one) => pathTo(one, trace)).join('\n')}`,
    )
  }
  return span
}
