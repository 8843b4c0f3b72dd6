// What the edge answers itself, and how it bears clients that are slow, many or hostile: problem
// documents, and others go on being served. The limiter is away here.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { freePort } from '../parts/free-ports.ts'
import { standIdle } from '../storm/idle-connections.ts'
import { BASE_URL, type Edge, type Pod, startEdge, startPod } from './edge.ts'
import { type Answer, headerOf, headersOf, jsonOf, openConnection } from './raw-http.ts'
import { waitFor } from './wait-for.ts'

const SETUP_MS_MAX = 400_000 // Envoy may have to be fetched

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
  pod.seen.length = 0
  pod.statuses.clear()
})

/** The answer to bytes as they are. */
async function answerTo(bytes: string | Buffer): Promise<Answer> {
  const connection = await openConnection(edge.port)
  connection.send(bytes)
  const answer = await connection.answer()
  connection.close()
  return answer
}

function expectProblem(answer: Answer, status: number, name: string): void {
  expect([answer.status, jsonOf(answer)['type']]).toEqual([status, `${BASE_URL}/problems/${name}`])
  const requestId = headerOf(answer, 'X-Request-Id')
  expect(requestId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(jsonOf(answer)).toMatchObject({ status, request_id: requestId })
  expect(Object.keys(jsonOf(answer)).sort().slice(0, 5)).toEqual(
    expect.arrayContaining(['detail', 'request_id']),
  )
  expect(headerOf(answer, 'Content-Type')).toBe('application/problem+json')
  expect(headerOf(answer, 'Cache-Control')).toBe('no-store')
  expect(answer.headers.filter(([key]) => /^(x-envoy|server)/i.test(key))).toEqual([])
}

const head = 'Host: x\r\n'

describe('problem documents', () => {
  test.each([
    ['HTTP/1.0', `GET /a HTTP/1.0\r\n\r\n`],
    ['no Host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['two Hosts', `GET /a HTTP/1.1\r\n${head}Host: y\r\n\r\n`],
    ['no HTTP', 'hello\r\n\r\n'],
    ['a name with _', `GET /a HTTP/1.1\r\n${head}x_y: 1\r\n\r\n`],
    ['an id that is forged', `GET /a HTTP/1.1\r\n${head}x_y: 1\r\nX-Request-Id: mine\r\n\r\n`],
    ['two lengths', `POST / HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    [
      'both lengths',
      `POST / HTTP/1.1\r\n${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['an odd coding', `POST / HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['a space before the colon', `GET /a HTTP/1.1\r\n${head}X : 1\r\n\r\n`],
    ['a fragment', `GET /a#b HTTP/1.1\r\n${head}\r\n`],
    [
      'a change of protocol',
      `GET /a HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    ['CONNECT', `CONNECT a:80 HTTP/1.1\r\n${head}\r\n`],
  ])('400 for %s', async (_, bytes) => {
    expectProblem(await answerTo(bytes), 400, 'bad-request')
    expect(pod.seen).toEqual([])
  })

  test('431 for a head of more than 16 KiB', async () => {
    const large = `GET /a HTTP/1.1\r\n${head}X: ${'x'.repeat(17_000)}\r\n\r\n`
    expectProblem(await answerTo(large), 431, 'headers-too-large')
  })

  test('408 for a head and for a body that do not come', async () => {
    expectProblem(await answerTo('GET /a HTTP/1.1\r\nHost'), 408, 'request-timeout')
    const half = `POST / HTTP/1.1\r\n${head}Content-Length: 9\r\n\r\nhalf`
    expectProblem(await answerTo(half), 408, 'request-timeout')
    expect(pod.seen).toEqual([])
  })

  test('413 for a body of more than 16 KiB, whether it says so or not', async () => {
    const said = `POST / HTTP/1.1\r\n${head}Content-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`
    expectProblem(await answerTo(said), 413, 'body-too-large')
    const chunk = `4000\r\n${'x'.repeat(0x40_00)}\r\n`
    const coded = `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n`
    const chunked = `${coded}${chunk.repeat(3)}0\r\n\r\n`
    expectProblem(await answerTo(chunked), 413, 'body-too-large')
    expect(pod.seen).toEqual([])
    const allowed = { method: 'POST', path: '/', body: 'x'.repeat(16 * 1024) }
    expect((await edge.ask(allowed)).status).toBe(201)
    expect(pod.seen.map(({ bytes }) => bytes)).toEqual([16 * 1024])
  })

  test('503 where no pod can be reached', async () => {
    const limiterPorts = [await freePort()]
    const alone = await startEdge({ podPort: await freePort(), limiterPorts })
    const answer = await alone.ask({ path: '/a' })
    await alone.stop()
    expectProblem(answer, 503, 'unavailable')
    expect(headerOf(answer, 'Retry-After')).toBe('1')
  })

  test('503 where it is to be closed while the limiter is silent', async () => {
    const limiterPorts = [await freePort()]
    const settings = { failClosed: true }
    const closed = await startEdge({ podPort: pod.port, limiterPorts, settings })
    const answers = [await closed.ask({ path: '/a' }), await closed.ask({ path: '/docs' })]
    await closed.stop()
    if (answers[0] !== undefined) expectProblem(answers[0], 503, 'unavailable')
    expect(answers[1]?.status).toBe(302) // a page: the limiter is not asked
  })
})

describe('paths', () => {
  test.each(['//a', '/a%2Fb', '/a//b', '/./a', '/a/../b', '/a\\b', '/%zz', '/a%00'])(
    '%s goes on as it is, and is no look-up',
    async (path) => {
      await edge.ask({ path })
      expect(pod.seen.map(({ url }) => url)).toEqual([path])
      await waitFor('the log', async () => (await edge.log()).at(-1)?.['path'] === path)
      expect((await edge.log()).at(-1)).toMatchObject({ route: 'page' })
    },
  )

  test('what is folded, or ends in bare line feeds, means the same to the pod', async () => {
    expect((await answerTo(`GET /a HTTP/1.1\nHost: x\n\n`)).status).toBe(302)
    expect((await answerTo(`GET /b HTTP/1.1\r\n${head}X: 1\r\n Y: 2\r\n\r\n`)).status).toBe(302)
    expect(pod.seen.map(({ url, headers }) => [url, headers['x'], headers['y']])).toEqual([
      ['/a', undefined, undefined],
      ['/b', '1 Y: 2', undefined],
    ])
  })

  test('no client can speak to Envoy by x-envoy-* headers', async () => {
    pod.statuses.set('/a', 500)
    const headers = {
      'X-Envoy-Retry-On': '5xx',
      'X-Envoy-Max-Retries': '5',
      'X-Request-Id': 'mine',
    }
    for (const client of ['192.0.2.1', '10.0.0.1', '127.0.0.1']) {
      pod.seen.length = 0
      await edge.ask({ path: '/a', client, headers })
      expect(pod.seen).toHaveLength(1)
      expect(pod.seen[0]?.headers['x-request-id']).not.toBe('mine')
      expect(pod.seen[0]?.headers['x-envoy-internal']).toBe(undefined)
    }
  })
})

describe('retries', () => {
  test('of a redirect that says 503: two; of a create none', async () => {
    pod.statuses.set('/a', 503)
    expect((await edge.ask({ path: '/a' })).status).toBe(503)
    expect(pod.seen).toHaveLength(3)
    expect((await edge.ask({ method: 'POST', path: '/a', body: '' })).status).toBe(503)
    expect(pod.seen).toHaveLength(4)
  })
})

test('many clients that say nothing or are slow hinder nobody', async () => {
  const outcome = await standIdle(edge, { idle: 2000, slow: 50, asked: 50 })
  process.stdout.write(`idle connections: ${JSON.stringify(outcome)}\n`)
  expect(outcome.cut).toBe(50)
}, 60_000)

test('metrics and readiness have a port of their own, the rest of the admin has none', async () => {
  const ask = async (path: string) => fetch(`${edge.metricsUrl}${path}`)
  expect(await (await ask('/stats/prometheus')).text()).toMatch(/envoy_http_downstream_rq_total/)
  expect(await (await ask('/ready')).text()).toMatch(/LIVE/)
  for (const path of ['/', '/stats', '/quitquitquit', '/config_dump', '/stats/prometheus/..']) {
    expect((await ask(path)).status).toBe(404)
  }
  const post = await fetch(`${edge.metricsUrl}/ready`, { method: 'POST' })
  expect(post.status).toBe(404)
  expect(headersOf(await edge.ask({ path: '/stats/prometheus' }), 'Location')).toHaveLength(1)
})
