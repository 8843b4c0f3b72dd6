// The HTTP endpoints of the rate-limit service on real listeners: /json, /healthcheck and the debug
// port.
import { afterEach, describe, expect, test } from '@jest/globals'
import { createRateLimitApp } from '../../../src/http/ratelimit/app.ts'
import { createDebugApp } from '../../../src/http/ratelimit/debug-app.ts'
import { listen } from '../../../src/http/serve.ts'
import { warn } from '../../kit/warn.ts'
import type { LimitRequest } from '../../../src/limits/descriptor.ts'
import { LimitRequestError, type Verdict } from '../../../src/limits/verdict.ts'
import { createLog } from '../../../src/telemetry/log.ts'

const log = createLog({ role: 'test', level: 'silent' })
const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

type App = Parameters<Awaited<ReturnType<typeof listen>>['attach']>[0]['app']

async function serve(app: App): Promise<string> {
  const listener = await listen({
    port: 0,
    host: '127.0.0.1',
    setting: 'PORT',
    onError: warn,
    drainMsMax: 100,
  })
  const baseUrl = `http://127.0.0.1:${listener.port}`
  listener.attach({ baseUrl, app })
  cleanUps.push(() => listener.drain())
  return baseUrl
}

const verdictOf = (code: Verdict['code']): Verdict => ({
  code,
  statuses: [],
  responseHeaders: [],
  body: undefined,
  dynamicMetadata: undefined,
})

async function startApp(decide: (request: LimitRequest) => Promise<Verdict>, isHealthy = true) {
  const defects: unknown[] = []
  const requests: LimitRequest[] = []
  const app = createRateLimitApp({
    decide: (request) => {
      requests.push(request)
      return decide(request)
    },
    isHealthy: () => isHealthy,
    onDefect: (error) => defects.push(error),
    log,
    baseUrl: 'http://localhost',
  })
  const base = await serve(app)
  const post = async (body: string) => {
    const response = await fetch(`${base}/json`, { method: 'POST', body })
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      body: await response.text(),
    }
  }
  return { base, post, requests, defects }
}

describe('POST /json', () => {
  const TEXT = 'text/plain; charset=utf-8'
  const foo = '{"domain": "foo"}'
  const admit = () => Promise.resolve(verdictOf('OK'))

  test('admits and denies with the statuses and bodies of the reference', async () => {
    const { post, requests } = await startApp(admit)
    const admitted = { status: 200, type: 'application/json', body: '{"overallCode":"OK"}' }
    expect(await post(foo)).toEqual(admitted)
    expect(requests).toEqual([{ domain: 'foo', descriptors: [], hits: 1 }])
    const denying = await startApp(() => Promise.resolve(verdictOf('OVER_LIMIT')))
    const denied = { status: 429, type: 'application/json', body: '{"overallCode":"OVER_LIMIT"}' }
    expect(await denying.post(foo)).toEqual(denied)
  })

  test('reports the fault of an invalid request', async () => {
    const { post, requests, defects } = await startApp(admit)
    for (const [body, message] of [
      ['', 'the body must be JSON: '],
      ['}', 'the body must be JSON: '],
      ['{"domain": 5}', 'domain must be a string of UTF-8: it is 5'],
    ] as const) {
      const response = await post(body)
      expect(response).toMatchObject({ status: 400, type: TEXT })
      expect(response.body).toMatch(/^Bad Request\n/)
      expect(response.body).toContain(message)
    }
    expect([requests, defects]).toEqual([[], []])
  })

  test('reports why a request cannot be decided', async () => {
    const message = 'rate limit descriptor list must not be empty'
    const { post, defects } = await startApp(() => Promise.reject(new LimitRequestError(message)))
    const body = `Bad Request\n${message}\n`
    expect(await post(foo)).toEqual({ status: 400, type: TEXT, body })
    expect(defects).toEqual([])
  })

  test('hides the details of an internal error, and keeps serving', async () => {
    const { post, defects } = await startApp(() => Promise.reject(new Error('redis://secret')))
    const failed = { status: 500, type: TEXT, body: 'Internal Server Error\n' }
    expect(await post(foo)).toEqual(failed)
    expect(await post(foo)).toEqual(failed)
    expect(defects).toHaveLength(2)
  })

  test('reads at most 16 KiB', async () => {
    const { post, requests } = await startApp(admit)
    const body = 'Request Entity Too Large\n'
    expect(await post(' '.repeat(17_000))).toEqual({ status: 413, type: TEXT, body })
    expect(await post(' '.repeat(10_000) + foo)).toMatchObject({ status: 200 })
    expect(requests).toHaveLength(1)
  })

  test('is the only method that its path allows', async () => {
    const { base } = await startApp(admit)
    const response = await fetch(`${base}/json`)
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    expect((await fetch(`${base}/other`)).status).toBe(404)
  })
})

test('GET /healthcheck returns OK, or 500 with an empty body', async () => {
  const admit = () => Promise.resolve(verdictOf('OK'))
  const read = async (base: string) => {
    const response = await fetch(`${base}/healthcheck`)
    return [response.status, await response.text()]
  }
  expect(await read((await startApp(admit)).base)).toEqual([200, 'OK'])
  expect(await read((await startApp(admit, false)).base)).toEqual([500, ''])
})

describe('the debug port', () => {
  test('lists its paths, serves its pages, and explains descriptors', async () => {
    const base = await serve(
      createDebugApp({
        renderRules: () => 'a rule\n',
        renderStats: () => 'ratelimit.x: 1\n',
        renderTop: () => '[]\n',
        explain: ({ domain, descriptor }) =>
          Promise.resolve([domain, JSON.stringify(descriptor.entries)]),
        log,
        baseUrl: 'http://localhost',
      }),
    )
    const read = async (path: string) => {
      const response = await fetch(base + path)
      return [response.status, response.headers.get('content-type'), await response.text()]
    }
    const type = 'text/plain; charset=utf-8'
    const list = [
      '/rlconfig: the active rules, and the faults of newer files\n',
      '/stats: the statistics\n',
      '/top: the values with the most hits at each rule in the last two minutes, as JSON\n',
      '/explain?domain=D&descriptor=k=v,k=v: the rules that match, and their counters\n',
    ]
    expect(await read('/')).toEqual([200, type, list.join('')])
    expect(await read('/rlconfig')).toEqual([200, type, 'a rule\n'])
    expect(await read('/stats')).toEqual([200, type, 'ratelimit.x: 1\n'])
    expect(await read('/top')).toEqual([200, type, '[]\n'])
    const [a, b] = [
      { key: 'a', value: '1=2' },
      { key: 'b', value: '' },
    ]
    const explained = `shop\n${JSON.stringify([a, b])}\n`
    expect(await read('/explain?domain=shop&descriptor=a=1%3D2,b=')).toEqual([200, type, explained])
    const noDomain = 'domain must not be empty\n'
    expect(await read('/explain?descriptor=a=1')).toEqual([400, type, noDomain])
    const invalid = 'descriptor must be key=value,key=value ...\n'
    for (const descriptor of ['', 'a', '=1', 'a=1,', Array(101).fill('a=1').join()]) {
      expect(await read(`/explain?domain=d&descriptor=${descriptor}`)).toEqual([400, type, invalid])
    }
    expect(await read('/debug/pprof/')).toEqual([404, type, 'Not Found\n'])
    const posted = await fetch(`${base}/rlconfig`, { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('responds with 500 if the rendering fails, and keeps serving', async () => {
    const renderStats = () => {
      throw new Error('secret')
    }
    const explain = () => Promise.resolve([])
    const renders = { renderRules: () => '', renderStats, renderTop: () => '' }
    const deps = { ...renders, explain, log, baseUrl: '' }
    const base = await serve(createDebugApp(deps))
    const failed = await fetch(`${base}/stats`)
    expect([failed.status, await failed.text()]).toEqual([
      500,
      expect.not.stringContaining('secret'),
    ])
    expect((await fetch(`${base}/rlconfig`)).status).toBe(200)
  })
})
