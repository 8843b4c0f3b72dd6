// One trace for each request: from Envoy to Cassandra and, through the limiter, to Redis, as an
// OpenTelemetry collector received it. Failures and retries are spans; logs contain the trace id.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createLinkRequest } from '../kit/http/client.ts'
import type { RawRequest } from '../kit/http/raw-http.ts'
import type { RunningCollector } from '../dependencies/collector.ts'
import { type ReceivedSpan, pathTo } from '../kit/received-spans.ts'
import { attemptsOf, findTrace, idOf, sendAt, type TracedEdge } from './find-trace.ts'
import { createLinks, restoreStack } from './stack-state.ts'
import type { Edge } from './start-edge.ts'
import type { LimiterPod, ServingPod } from './start-pods.ts'
import type { Stack } from './start-stack.ts'

const TEST_MS_MAX = 300_000
const SCRAPE_MS_MAX = 30_000
/** On a machine that stalls, calls time out before they start, and spans are lost. */
const TRIES_MAX = 20
const createOne = createLinkRequest({ long_url: 'https://example.com/traced' })

/** The stack, and an edge of it that traces every request. */
interface Traced extends TracedEdge {
  readonly stackNow: () => Stack
}

/** The `tracing` suite. */
export function testTracing(stackNow: () => Stack, collectorNow: () => RunningCollector): void {
  let edge: Edge
  const traced = { stackNow, collectorNow, edgeNow: () => edge }

  beforeAll(async () => {
    edge = await stackNow().startEdge({ isTraced: true })
  }, TEST_MS_MAX)

  afterAll(async () => {
    await edge.envoy.stop()
    await edge.sidecar.stop()
  }, TEST_MS_MAX)

  testPaths(traced)
  testFaults(traced)
  testUntraced(traced)
}

const redirectPath = 'edge: ingress > edge: router redirect egress > redirect: GET /{code}'
/** The gRPC method of the limiter. */
const service = 'envoy.service.ratelimit.v3.RateLimitService'
const method = `${service}/ShouldRateLimit`
const limits =
  `edge: ingress > edge: async ${service}.ShouldRateLimit egress > ` +
  `ratelimit: ${method} > ratelimit: EVALSHA`

/** The path of each span in its trace. */
function testPaths(traced: Traced): void {
  test(
    'a create is one trace, from Envoy to the limiter’s Redis and to Cassandra',
    async () => {
      const createPath = 'edge: ingress > edge: router create egress > create: POST /v1/urls'
      const { response, trace } = await findTrace(traced, {
        requests: copiesOf(createOne),
        status: 201,
        paths: [limits, `${createPath} > create: INSERT links`, `${createPath} > create: DEL`],
      })
      const pod = spanOf(trace, 'POST /v1/urls')
      expect(pod).toMatchObject({ kind: 'server', isError: false })
      expect(pod.attributes).toMatchObject({
        'http.route': '/v1/urls',
        'http.response.status_code': '201',
        'http.request.header.x-request-id': expect.stringContaining(idOf(response)),
      })
      expect(spanOf(trace, 'INSERT links')).toMatchObject({
        kind: 'client',
        attributes: { 'db.system.name': 'cassandra', 'curtail.cassandra.nodes_tried': '1' },
      })
      expect(spanOf(trace, method)).toMatchObject({ kind: 'server' })
      expect(JSON.stringify(trace)).not.toContain('example.com/traced')
    },
    TEST_MS_MAX,
  )

  test(
    'a redirect that is not cached is one trace, from Envoy to Redis and to Cassandra',
    async () => {
      const operations = ['GET', 'SELECT links', 'EVALSHA']
      const { trace } = await findTrace(traced, {
        requests: await requestsForNewLinks(traced.stackNow()),
        status: 302,
        paths: [
          limits,
          ...operations.map((operation) => `${redirectPath} > redirect: ${operation}`),
        ],
      })
      const paths = trace.map((span) => pathTo(span, trace))
      expect(paths.filter((path) => path.includes('(no parent)'))).toEqual([])
      expect(spanOf(trace, 'ingress').attributes).toMatchObject({ 'http.status_code': '302' })
      const { redirects, limiters } = traced.stackNow()
      const histograms = await exemplarsOf([...redirects, ...limiters], trace[0]?.traceId ?? '')
      expect(histograms).toEqual([
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
      const [code = ''] = await createLinks(stack, 1)
      await stack.redirects[0]?.kill()
      try {
        const { trace } = await findTrace(traced, {
          requests: copiesOf({ path: `/${code}` }),
          status: 302,
          paths: [],
          // The edge may select the dead pod first or not; it also retries after a time-out.
          matches: (spans) => {
            const attempts = attemptsOf(spans)
            return attempts.length === 2 && attempts[0]?.attributes['response_flags'] === 'UF'
          },
        })
        const attempts = attemptsOf(trace)
        const [first, second] = attempts
        expect(first?.attributes).toMatchObject({ error: 'true', response_flags: 'UF' })
        expect(second?.attributes).toMatchObject({ 'retry.count': '1', 'http.status_code': '302' })
        expect(attempts).toHaveLength(2)
      } finally {
        await stack.redirects[0]?.restart()
        await restoreStack(stack)
      }
    },
    TEST_MS_MAX,
  )

  test(
    'an unavailable cache is an error of its own span only',
    async () => {
      const stack = traced.stackNow()
      const requests = await requestsForNewLinks(stack)
      await stack.cache.kill()
      try {
        const { trace } = await findTrace(traced, {
          requests,
          status: 302,
          paths: [`${redirectPath} > redirect: GET`, `${redirectPath} > redirect: SELECT links`],
        })
        expect(spanOf(trace, 'GET')).toMatchObject({
          isError: true,
          attributes: { 'error.type': 'not-done' },
        })
        expect(trace.filter(({ isError }) => isError)).toHaveLength(1)
      } finally {
        await stack.cache.restart()
        await restoreStack(stack)
      }
    },
    TEST_MS_MAX,
  )
}

/** Which requests are traced. */
function testUntraced(traced: Traced): void {
  test(
    'the traceparent of a client does not decide what is traced',
    async () => {
      const { stackNow, collectorNow } = traced
      const traceId = 'ab'.repeat(16)
      const headers = { traceparent: `00-${traceId}-${'1'.repeat(16)}-01` }
      const untraced = await sendAt(stackNow().port, { ...createOne, headers })
      expect(untraced.status).toBe(201)
      const requests = copiesOf({ ...createOne, headers })
      await findTrace(traced, { requests, status: 201, paths: [] })
      expect(collectorNow().spans(traceId)).toEqual([])
      const roots = collectorNow()
        .spans()
        .filter(({ parentId }) => parentId === '')
      expect(new Set(roots.map(({ service }) => service))).toEqual(new Set(['curtail-edge']))
    },
    TEST_MS_MAX,
  )
}

/** The same request, `TRIES_MAX` times. */
function copiesOf(request: RawRequest): readonly RawRequest[] {
  return new Array<RawRequest>(TRIES_MAX).fill(request)
}

/** `TRIES_MAX` redirects, each of a link that no client has resolved. */
async function requestsForNewLinks(stack: Stack): Promise<readonly RawRequest[]> {
  return (await createLinks(stack, TRIES_MAX)).map((code) => ({ path: `/${code}` }))
}

/** The histograms of these pods with an exemplar of the trace. */
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
  const exemplars = lines.filter((line) => line.includes(`# {trace_id="${traceId}"}`))
  return [...new Set(exemplars.map((line) => line.replace(/_bucket\{.*/, '')))].sort()
}

/** The only span with this name. Throws if the trace has none or several. */
function spanOf(trace: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [span, other] = trace.filter((candidate) => candidate.name === name)
  if (span === undefined || other !== undefined) {
    const paths = trace.map((candidate) => pathTo(candidate, trace))
    throw new Error(`expected one span ${name} in:\n${paths.join('\n')}`)
  }
  return span
}
