// The standalone process with a failing store: another process locks the database, or the pool of
// codes is empty. It returns 503 with Retry-After, serves what needs no store, and recovers.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Client, codeOf, openClient } from '../../kit/http/client.ts'
import { type RawResponse, headerOf, jsonOf } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const CODES_HELD_MAX = 1200
/** So many minted blocks of 1,000 codes need no refill. */
const BLOCKS_MIN = 10
const target = 'https://example.com/'

let service: Standalone
let client: Client
let db: DatabaseSync

beforeAll(async () => {
  service = await startStandalone()
  client = await openClient(service.port)
  db = new DatabaseSync(join(service.dataDir, 'curtail.db'), { timeout: 5000 })
  await client.create({ long_url: target, custom_alias: 'found' })
}, START_MS_MAX)

afterAll(async () => {
  db.close()
  client.close()
  await service.stop()
}, START_MS_MAX)

const nameOf = (response: RawResponse) => String(jsonOf(response)['type']).split('/').at(-1)
const poolRow = () => db.prepare('SELECT * FROM code_pools').get() ?? {}
const expectUnavailable = (response: RawResponse) => {
  expect([response.status, nameOf(response)]).toEqual([503, 'store-unavailable'])
  expect(Number(headerOf(response, 'Retry-After'))).toBeGreaterThanOrEqual(1)
  expect(response.body.toString()).not.toMatch(/sqlite|locked|busy/i)
}

test(
  'creates return 503 and store nothing while the store cannot write, and redirects work',
  async () => {
    db.exec('BEGIN IMMEDIATE')
    const body = { long_url: target, custom_alias: 'by-key' }
    const byKey = { 'Idempotency-Key': 'while-locked' }
    try {
      const creates = [
        client.create({ long_url: target }),
        client.create({ long_url: target, custom_alias: 'locked' }),
        client.create(body, byKey),
      ]
      const admin = await fetch(`${service.adminUrl}/admin/links/found`)
      expect([admin.status, admin.headers.get('Retry-After')]).toEqual([503, '1'])
      expect((await client.resolve('found')).status).toBe(302)
      expect((await client.resolve('none')).status).toBe(404)
      expect((await fetch(`${service.adminUrl}/readyz`)).status).toBe(200)
      for (const response of await Promise.all(creates)) expectUnavailable(response)
    } finally {
      db.exec('ROLLBACK')
    }
    expect((await client.resolve('locked')).status).toBe(404)
    expect(codeOf(await client.create(body, byKey))).toBe('by-key')
    expect(headerOf(await client.resolve('by-key'), 'Location')).toBe(target)
    expect((await client.create({ long_url: target, custom_alias: 'locked' })).status).toBe(201)
  },
  TEST_MS_MAX,
)

test(
  'creates return 503 pool-empty while the pool is empty, but aliases and redirects work',
  async () => {
    // A refill that is in progress would still add its blocks to the empty pool.
    await waitFor('a create, and the refill after it', async () => {
      const { status } = await client.create({ long_url: target })
      return status === 201 && (poolRow()['minted'] as number) >= BLOCKS_MIN
    })
    const { secret_fingerprint: fingerprint = '' } = poolRow()
    // A pool of another secret is not refilled.
    db.exec("UPDATE code_pools SET claimed = minted, secret_fingerprint = 'another'")
    let response = await client.create({ long_url: target })
    for (let created = 0; response.status === 201 && created < 2 * CODES_HELD_MAX; created += 32) {
      const responses = await Promise.all(
        Array.from({ length: 32 }, () => client.create({ long_url: target })),
      )
      response = responses.find(({ status }) => status !== 201) ?? response
    }
    expect([response.status, nameOf(response)]).toEqual([503, 'pool-empty'])
    expect(Number(headerOf(response, 'Retry-After'))).toBeGreaterThanOrEqual(1)
    const byKey = { 'Idempotency-Key': 'while-empty' }
    expect(nameOf(await client.create({ long_url: target }, byKey))).toBe('pool-empty')
    const aliased = await client.create({ long_url: target, custom_alias: 'no-pool' })
    expect(codeOf(aliased)).toBe('no-pool')
    expect((await client.resolve('no-pool')).status).toBe(302)
    expect((await fetch(`${service.adminUrl}/readyz`)).status).toBe(200)

    db.prepare('UPDATE code_pools SET secret_fingerprint = ?').run(fingerprint)
    await waitFor('the refill of the pool', async () => {
      return (await client.create({ long_url: target }, byKey)).status === 201
    })
    expect((await client.create({ long_url: target })).status).toBe(201)
  },
  TEST_MS_MAX,
)

test(
  'lookups return 503 while the store cannot read, and never 404',
  async () => {
    await client.create({ long_url: target, custom_alias: 'unread' })
    db.exec('ALTER TABLE links RENAME TO unreadable')
    try {
      for (const code of ['unread', 'unknown']) {
        expectUnavailable(await client.resolve(code))
        expect(headerOf(await client.resolve(code), 'Cache-Control')).toBe('no-store')
      }
      expect((await client.resolve('much-too-long')).status).toBe(404)
    } finally {
      db.exec('ALTER TABLE unreadable RENAME TO links')
    }
    expect((await client.resolve('unread')).status).toBe(302)
    expect((await client.resolve('unknown')).status).toBe(404)
  },
  TEST_MS_MAX,
)
