// The responses that the edge generates itself: problem documents, also to malformed requests; slow
// or idle clients do not delay others. The limiter is unavailable in these tests.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { holdIdleConnections } from '../../soak/idle-connections.ts'
import { BASE_URL, type Edge, type Pod, startEdge, startPod } from '../../kit/edge/edge.ts'
import {
  type RawResponse,
  headerOf,
  headersOf,
  jsonOf,
  openConnection,
} from '../../kit/http/raw-http.ts'
import { waitFor } from '../../kit/wait-for.ts'

const SETUP_MS_MAX = 400_000 // includes the download of Envoy

let pod: Pod
let edge: Edge

beforeAll(async () => {
  pod = await startPod()
  edge = await startEdge({
    podPort: pod.port,
    limiterPorts: [await freePort()],
    settings: { requestHeadersTimeout: '0.5s', requestTimeout: '1s' },
  })
}, SETUP_MS_MAX)

afterAll(async () => {
  await edge.stop()
  pod.close()
})

beforeEach(() => {
  pod.requests.length = 0
  pod.statuses.clear()
})

/** The response to raw bytes. */
async function responseTo(bytes: string | Buffer): Promise<RawResponse> {
  const connection = await openConnection(edge.port)
  connection.send(bytes)
  const response = await connection.nextResponse()
  connection.close()
  return response
}

function expectProblem(response: RawResponse, status: number, name: string): void {
  expect([response.status, jsonOf(response)['type']]).toEqual([
    status,
    `${BASE_URL}/problems/${name}`,
  ])
  const requestId = headerOf(response, 'X-Request-Id')
  expect(requestId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(jsonOf(response)).toMatchObject({ status, request_id: requestId })
  expect(Object.keys(jsonOf(response)).sort().slice(0, 5)).toEqual(
    expect.arrayContaining(['detail', 'request_id']),
  )
  expect(headerOf(response, 'Content-Type')).toBe('application/problem+json')
  expect(headerOf(response, 'Cache-Control')).toBe('no-store')
  expect(response.headers.filter(([key]) => /^(x-envoy|server)/i.test(key))).toEqual([])
}

const host = 'Host: x\r\n'

describe('the edge responds with the problem document', () => {
  test.each([
    ['HTTP/1.0', `GET /a HTTP/1.0\r\n\r\n`],
    ['no Host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['two Hosts', `GET /a HTTP/1.1\r\n${host}Host: y\r\n\r\n`],
    ['no HTTP', 'hello\r\n\r\n'],
    ['a name with _', `GET /a HTTP/1.1\r\n${host}x_y: 1\r\n\r\n`],
    ['a forged request id', `GET /a HTTP/1.1\r\n${host}x_y: 1\r\nX-Request-Id: mine\r\n\r\n`],
    ['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    [
      'both lengths',
      `POST / HTTP/1.1\r\n${host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['an odd coding', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['a space before the colon', `GET /a HTTP/1.1\r\n${host}X : 1\r\n\r\n`],
    ['a fragment', `GET /a#b HTTP/1.1\r\n${host}\r\n`],
    [
      'a protocol upgrade',
      `GET /a HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    ['CONNECT', `CONNECT a:80 HTTP/1.1\r\n${host}\r\n`],
  ])('400 for %s', async (_, bytes) => {
    expectProblem(await responseTo(bytes), 400, 'bad-request')
    expect(pod.requests).toEqual([])
  })

  test('431 for headers of more than 16 KiB', async () => {
    const large = `GET /a HTTP/1.1\r\n${host}X: ${'x'.repeat(17_000)}\r\n\r\n`
    expectProblem(await responseTo(large), 431, 'headers-too-large')
  })

  test('408 for headers and for a body that do not arrive', async () => {
    expectProblem(await responseTo('GET /a HTTP/1.1\r\nHost'), 408, 'request-timeout')
    const half = `POST / HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nhalf`
    expectProblem(await responseTo(half), 408, 'request-timeout')
    expect(pod.requests).toEqual([])
  })

  test('413 for a body of more than 16 KiB, with or without Content-Length', async () => {
    const sized = `POST / HTTP/1.1\r\n${host}Content-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`
    expectProblem(await responseTo(sized), 413, 'body-too-large')
    const chunk = `4000\r\n${'x'.repeat(0x40_00)}\r\n`
    const coded = `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`
    const chunked = `${coded}${chunk.repeat(3)}0\r\n\r\n`
    expectProblem(await responseTo(chunked), 413, 'body-too-large')
    expect(pod.requests).toEqual([])
    const allowed = { method: 'POST', path: '/', body: 'x'.repeat(16 * 1024) }
    expect((await edge.send(allowed)).status).toBe(201)
    expect(pod.requests.map(({ bytes }) => bytes)).toEqual([16 * 1024])
  })

  test('503 if no pod is reachable', async () => {
    const limiterPorts = [await freePort()]
    const alone = await startEdge({ podPort: await freePort(), limiterPorts })
    const response = await alone.send({ path: '/a' })
    await alone.stop()
    expectProblem(response, 503, 'unavailable')
    expect(headerOf(response, 'Retry-After')).toBe('1')
  })

  test('503 with failClosed while the limiter is unavailable', async () => {
    const limiterPorts = [await freePort()]
    const settings = { failClosed: true }
    const closed = await startEdge({ podPort: pod.port, limiterPorts, settings })
    const responses = [await closed.send({ path: '/a' }), await closed.send({ path: '/docs' })]
    await closed.stop()
    if (responses[0] !== undefined) expectProblem(responses[0], 503, 'unavailable')
    expect(responses[1]?.status).toBe(302) // for a page, the edge does not call the limiter
  })
})

test('one client gets 429 for more than 20 QR codes at once, another client does not', async () => {
  const startMs = performance.now()
  const get = (client: string) => edge.send({ path: '/%61bc.svg', client })
  const responses = await Promise.all(Array.from({ length: 40 }, () => get('192.0.2.80')))
  const refilled = Math.ceil(5 * ((performance.now() - startMs) / 1000))
  const denied = responses.filter(({ status }) => status === 429)
  expect(denied.length).toBeLessThanOrEqual(20)
  expect(denied.length).toBeGreaterThanOrEqual(20 - refilled)
  for (const response of denied) {
    expectProblem(response, 429, 'rate-limited')
    expect(jsonOf(response)['rule']).toBe('local')
    expect(headersOf(response, 'X-RateLimit-Limit')).toEqual(['20'])
    expect(headersOf(response, 'Retry-After')).toEqual(['1'])
  }
  expect((await get('192.0.2.81')).status).toBe(302)
  await waitFor('the access log', async () => (await edge.log()).at(-1)?.['route'] === 'qr')
})

describe('the edge', () => {
  test.each(['//a', '/a%2Fb', '/a//b', '/./a', '/a/../b', '/a\\b', '/%zz', '/a%00'])(
    'forwards %s unchanged, and does not count it as a lookup',
    async (path) => {
      await edge.send({ path })
      expect(pod.requests.map(({ url }) => url)).toEqual([path])
      await waitFor('the access log', async () => (await edge.log()).at(-1)?.['path'] === path)
      expect((await edge.log()).at(-1)).toMatchObject({ route: 'page' })
    },
  )

  test('normalizes folded headers and bare line feeds', async () => {
    expect((await responseTo(`GET /a HTTP/1.1\nHost: x\n\n`)).status).toBe(302)
    expect((await responseTo(`GET /b HTTP/1.1\r\n${host}X: 1\r\n Y: 2\r\n\r\n`)).status).toBe(302)
    expect(pod.requests.map(({ url, headers }) => [url, headers['x'], headers['y']])).toEqual([
      ['/a', undefined, undefined],
      ['/b', '1 Y: 2', undefined],
    ])
  })

  test('ignores the x-envoy-* headers of clients', async () => {
    pod.statuses.set('/a', 500)
    const headers = {
      'X-Envoy-Retry-On': '5xx',
      'X-Envoy-Max-Retries': '5',
      'X-Request-Id': 'mine',
    }
    for (const client of ['192.0.2.1', '10.0.0.1', '127.0.0.1']) {
      pod.requests.length = 0
      await edge.send({ path: '/a', client, headers })
      expect(pod.requests).toHaveLength(1)
      expect(pod.requests[0]?.headers['x-request-id']).not.toBe('mine')
      expect(pod.requests[0]?.headers['x-envoy-internal']).toBe(undefined)
    }
  })
})

describe('the edge retries', () => {
  test('a redirect with a 503 response twice, and a create never', async () => {
    pod.statuses.set('/a', 503)
    expect((await edge.send({ path: '/a' })).status).toBe(503)
    expect(pod.requests).toHaveLength(3)
    expect((await edge.send({ method: 'POST', path: '/a', body: '' })).status).toBe(503)
    expect(pod.requests).toHaveLength(4)
  })
})

test('the edge serves other clients despite many idle or slow clients', async () => {
  const outcome = await holdIdleConnections(edge, { idle: 2000, slow: 50, requests: 50 })
  process.stdout.write(`idle connections: ${JSON.stringify(outcome)}\n`)
  expect(outcome.timedOut).toBe(50)
}, 60_000)

test('the metrics port exposes metrics and readiness, and no other admin path', async () => {
  const read = async (path: string) => fetch(`${edge.metricsUrl}${path}`)
  expect(await (await read('/stats/prometheus')).text()).toMatch(/envoy_http_downstream_rq_total/)
  expect(await (await read('/ready')).text()).toMatch(/LIVE/)
  for (const path of ['/', '/stats', '/quitquitquit', '/config_dump', '/stats/prometheus/..']) {
    expect((await read(path)).status).toBe(404)
  }
  const post = await fetch(`${edge.metricsUrl}/ready`, { method: 'POST' })
  expect(post.status).toBe(404)
  expect(headersOf(await edge.send({ path: '/stats/prometheus' }), 'Location')).toHaveLength(1)
})
