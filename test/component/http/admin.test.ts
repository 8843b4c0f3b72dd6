// The admin port of the real standalone process: the admin API, access control, probes and metrics.
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, openClient } from '../../kit/http/client.ts'
import {
  type RawResponse,
  type RawRequest,
  headerOf,
  jsonOf,
  openConnection,
} from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000
const target = 'https://example.com/'

let service: Standalone
let client: Client

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
}, START_MS_MAX)

afterAll(async () => {
  client.close()
  await service.stop()
}, START_MS_MAX)

/** Sends one request to the admin port. */
async function admin(
  method: string,
  path: string,
  more: Partial<RawRequest> = {},
): Promise<RawResponse> {
  const connection = await openConnection(Number(new URL(service.adminUrl).port))
  const response = await connection.exchange({ method, path, ...more })
  connection.close()
  expect(headerOf(response, 'X-Request-Id')).toMatch(/^[\x21-\x7e]+$/)
  return response
}

const stateOf = async (code: string) => jsonOf(await admin('GET', `/admin/links/${code}`))['state']

describe('a link', () => {
  test('is returned with its members', async () => {
    const beforeMs = Date.now()
    const body = { long_url: target, custom_alias: 'shown', ttl_days: 2 }
    const created = jsonOf(await client.create(body))
    const response = await admin('GET', '/admin/links/shown')
    expect(response.status).toBe(200)
    expect(headerOf(response, 'Cache-Control')).toBe('no-store')
    const link = jsonOf(response)
    expect(link).toEqual({
      short_code: 'shown',
      long_url: target,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      expires_at: created['expires_at'],
      creator_id: null,
      state: 'active',
    })
    expect(Date.parse(String(link['created_at']))).toBeGreaterThanOrEqual(beforeMs)
    await client.create({ long_url: target, custom_alias: 'endless' })
    expect(jsonOf(await admin('GET', '/admin/links/endless'))['expires_at']).toBeNull()
  })

  test('stops redirecting immediately when disabled, and redirects when enabled', async () => {
    await client.create({ long_url: target, custom_alias: 'switched' })
    for (let times = 0; times < 3; times++) {
      expect((await client.resolve('switched')).status).toBe(302)
      const disabled = await admin('POST', '/admin/links/switched/disable')
      expect([disabled.status, jsonOf(disabled)['state']]).toEqual([200, 'disabled'])
      expect((await client.resolve('switched')).status).toBe(404)
      expect((await admin('POST', '/admin/links/switched/disable')).body).toEqual(disabled.body)
      const enabled = await admin('POST', '/admin/links/switched/enable')
      expect([enabled.status, jsonOf(enabled)['state']]).toEqual([200, 'active'])
      expect((await admin('POST', '/admin/links/switched/enable')).status).toBe(200)
    }
    expect((await client.create({ long_url: target, custom_alias: 'switched' })).status).toBe(409)
  })

  test('stops redirecting immediately when disabled under concurrent requests', async () => {
    await client.create({ long_url: target, custom_alias: 'busy' })
    for (let times = 0; times < 10; times++) {
      const before = Array.from({ length: 16 }, () => client.resolve('busy'))
      await admin('POST', '/admin/links/busy/disable')
      const after = Array.from({ length: 16 }, () => client.resolve('busy'))
      await Promise.all(before)
      expect((await Promise.all(after)).map(({ status }) => status)).toEqual(Array(16).fill(404))
      await admin('POST', '/admin/links/busy/enable')
      expect((await client.resolve('busy')).status).toBe(302)
    }
  })

  test('has no target once deleted, and its code stays reserved', async () => {
    await client.create({ long_url: target, custom_alias: 'deleted' })
    expect((await client.resolve('deleted')).status).toBe(302)
    for (let times = 0; times < 2; times++) {
      const response = await admin('DELETE', '/admin/links/deleted')
      expect([response.status, response.body.length]).toEqual([204, 0])
      expect((await client.resolve('deleted')).status).toBe(404)
    }
    const link = jsonOf(await admin('GET', '/admin/links/deleted'))
    expect([link['state'], link['long_url']]).toEqual(['deleted', null])
    for (const verb of ['enable', 'disable']) {
      expect(jsonOf(await admin('POST', `/admin/links/deleted/${verb}`))['state']).toBe('deleted')
    }
    expect((await client.resolve('deleted')).status).toBe(404)
    expect((await client.create({ long_url: target, custom_alias: 'deleted' })).status).toBe(409)
    const db = new DatabaseSync(join(service.dataDir, 'curtail.db'), { readOnly: true })
    const row = db.prepare("SELECT long_url FROM links WHERE short_code = 'deleted'").get()
    db.close()
    expect(row).toMatchObject({ long_url: null })
  })

  test('is reported as expired once its expiry has passed', async () => {
    await client.create({ long_url: target, custom_alias: 'expired', ttl_days: 1 })
    const db = new DatabaseSync(join(service.dataDir, 'curtail.db'), { timeout: 5000 })
    db.exec("UPDATE links SET expires_at = 1 WHERE short_code = 'expired'")
    db.close()
    expect(await stateOf('expired')).toBe('expired')
  })

  test.each([
    ...['none', 'NONE', 'too-long-to-be', '%zz', 'a%2Fb', '.', '*', 'shown/', 'shown/renew', ''],
  ])('that does not exist returns 404: %s', async (code) => {
    const requests = [
      ['GET', ''],
      ['POST', '/disable'],
      ['POST', '/enable'],
      ['DELETE', ''],
    ] as const
    for (const [method, suffix] of requests) {
      const response = await admin(method, `/admin/links/${code}${suffix}`)
      expect([method, response.status]).toEqual([method, 404])
      expect(jsonOf(response)['type']).toBe(`${service.linkBase}/problems/not-found`)
    }
  })
})

test.each([
  ['POST', '/admin/links', 'GET, HEAD'],
  ['PUT', '/admin/links/shown', 'GET, HEAD, DELETE'],
  ['POST', '/admin/links/shown', 'GET, HEAD, DELETE'],
  ['GET', '/admin/links/shown/disable', 'POST'],
  ['DELETE', '/admin/links/shown/enable', 'POST'],
  ['POST', '/admin/pools', 'GET, HEAD'],
])('the admin API returns 405 for %s %s', async (method, path, allow) => {
  const response = await admin(method, path)
  expect([response.status, headerOf(response, 'Allow')]).toEqual([405, allow])
})

test('the admin API lists each pool with its members', async () => {
  await client.create({ long_url: target })
  const response = await admin('GET', '/admin/pools')
  expect(response.status).toBe(200)
  const pools = JSON.parse(response.body.toString()) as Record<string, unknown>[]
  expect(pools).toEqual([
    {
      pool: 'default',
      level: expect.any(Number),
      low_water: expect.any(Number),
      target: expect.any(Number),
      claim_rate: expect.any(Number),
      seconds_to_empty: pools[0]?.['claim_rate'] === 0 ? null : expect.any(Number),
    },
  ])
  const pool = pools[0] as Record<string, number>
  expect(pool['level']).toBeGreaterThanOrEqual(pool['low_water'] ?? Infinity)
})

describe('the admin API', () => {
  const statusOf = async (headers: RawRequest['headers']) =>
    (await admin('GET', '/admin/pools', { headers: headers ?? {} })).status

  test.each(['localhost', 'localhost:9090', 'LOCALHOST', '127.0.0.1:1', '[::1]', '[::1]:9090'])(
    'allows a program on this machine that sends the Host %s',
    async (host) => {
      expect(await statusOf({ Host: host })).toBe(200)
    },
  )

  test.each([
    'example.com',
    'localhost.example.com',
    '127.0.0.1.example.com',
    '10.0.0.1',
    'x:9090',
  ])('denies a request that has the Host %s', async (host) => {
    expect(await statusOf({ Host: host })).toBe(403)
  })

  test.each(['http://example.com', 'null', 'http://localhost:9090', ''])(
    'denies a request that has the Origin %s',
    async (origin) => {
      expect(await statusOf({ Origin: origin })).toBe(403)
      const response = await admin('DELETE', '/admin/links/shown', { headers: { Origin: origin } })
      expect(response.status).toBe(403)
      expect(jsonOf(response)['type']).toBe(`${service.linkBase}/problems/forbidden`)
      expect(await stateOf('shown')).toBe('active')
    },
  )

  test('is not reachable at another address of this machine', async () => {
    const port = Number(new URL(service.adminUrl).port)
    const result = await new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.2', timeout: 5000 })
      socket.on('connect', () => {
        resolve('connected')
        socket.destroy()
      })
      for (const event of ['error', 'timeout']) socket.on(event, resolve)
    })
    expect(result).not.toBe('connected')
  })

  test(
    'requires ADMIN_TOKEN if it is set, except for probes and metrics',
    async () => {
      const token = '~5' // a token of this test may be short
      const guarded = await startStandalone({ env: { ADMIN_TOKEN: token } })
      const sendRequest = (path: string, headers: Record<string, string> = {}) =>
        fetch(`${guarded.adminUrl}${path}`, { headers })
      try {
        const wrong = [undefined, 'Bearer', `Bearer ${token}x`, `Basic ${token}`, token, 'Bearer ']
        wrong.push(
          `Bearer${token}`,
          `Bearer ${token} x`,
          `xBearer ${token}`,
          `Bearer ${token.slice(1)}`,
        )
        for (const authorization of wrong) {
          const headers = authorization === undefined ? undefined : { authorization }
          const response = await sendRequest('/admin/pools', headers)
          expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([
            401,
            'Bearer',
          ])
          expect(await response.text()).not.toContain(token)
        }
        expect((await sendRequest('/admin/none')).status).toBe(401)
        for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bearer  ']) {
          const right = { authorization: `${scheme} ${token}` }
          expect([scheme, (await sendRequest('/admin/pools', right)).status]).toEqual([scheme, 200])
        }
        for (const path of ['/livez', '/readyz', '/metrics']) {
          expect((await sendRequest(path)).status).toBe(200)
        }
        expect(JSON.stringify(guarded.log)).not.toContain(token)
      } finally {
        await guarded.stop()
      }
    },
    START_MS_MAX,
  )
})

describe('probes and metrics', () => {
  test('report a process that is live and ready', async () => {
    expect(jsonOf(await admin('GET', '/livez'))).toEqual({ status: 'live' })
    const ready = await admin('GET', '/readyz')
    expect(ready.status).toBe(200)
    expect(jsonOf(ready)).toEqual({ status: 'ready', dependencies: { store: 'up' } })
  })

  test('have the documented metric names and count requests', async () => {
    await client.resolve('none')
    const response = await admin('GET', '/metrics')
    expect(headerOf(response, 'Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/)
    const text = response.body.toString()
    const documented = [...readFileSync('docs/metrics.md', 'utf8').matchAll(/^\| `(\w+)`/gm)]
    expect(documented.length).toBeGreaterThan(10)
    for (const [, name = ''] of documented) expect(text).toContain(`# TYPE ${name} `)
    expect(text).toMatch(/^curtail_creates_total\{result="created"\} [1-9]/m)
    expect(text).toMatch(/^curtail_http_request_duration_seconds_count\{.*route="code".*\} [1-9]/m)
    expect(text).toMatch(/^process_cpu_seconds_total /m)
    expect(text).not.toContain('switched')
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect(text).toContain(`curtail_build_info{version="${version}",`)
  })

  test.each(['/livez', '/readyz', '/metrics'])('return 405 to other methods: %s', async (path) => {
    expect((await admin('HEAD', path)).status).toBe(200)
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await admin(method, path)
      const allow = headerOf(response, 'Allow')
      expect([method, response.status, allow]).toEqual([method, 405, 'GET, HEAD'])
      expect(jsonOf(response)['type']).toBe(`${service.linkBase}/problems/method-not-allowed`)
    }
  })
})

test('the admin port returns 404 for every other path', async () => {
  for (const path of ['/', '/v1/urls', '/shown', '/admin', '/admin/']) {
    expect([path, (await admin('GET', path)).status]).toEqual([path, 404])
  }
})
