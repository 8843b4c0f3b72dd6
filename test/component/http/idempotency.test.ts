// The header Idempotency-Key of POST /v1/urls on the real standalone process: requests that are
// replays or are rejected, and concurrent requests with one key, which create one link.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Client, codeOf, openClient } from '../../kit/http/client.ts'
import { type RawResponse, headerOf, jsonOf } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const START_MS_MAX = 180_000

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

const long = 'https://example.com/long'
const createBy = (key: string | readonly string[], body: unknown) =>
  client.create(body, { 'Idempotency-Key': key })
const nameOf = (response: RawResponse) => String(jsonOf(response)['type']).split('/').at(-1)
const isReplayed = (response: RawResponse) => headerOf(response, 'Idempotency-Replayed') === 'true'

/** The number of links created, by the metric of successful creates. */
async function createdLinks(): Promise<number> {
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
  return Number(/^curtail_creates_total\{result="created"\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

test('a retry with the same body replays the 201 and creates nothing', async () => {
  const body = { long_url: long, ttl_days: 3 }
  const first = await createBy('retried', body)
  expect([first.status, isReplayed(first)]).toEqual([201, false])
  const created = await createdLinks()
  for (let times = 0; times < 3; times++) {
    const replay = await createBy('retried', body)
    expect([replay.status, isReplayed(replay)]).toEqual([201, true])
    expect(replay.body).toEqual(first.body)
    expect(headerOf(replay, 'Location')).toBe(headerOf(first, 'Location'))
  }
  expect(await createdLinks()).toBe(created)
})

test('a retry with an equivalent body replays the 201', async () => {
  const first = await createBy('equivalent', { long_url: long, ttl_days: 1 })
  const same = ` {"ttl_days": 1.0, "custom_alias": null, "long_url": "${long}"}`
  const replay = await createBy('equivalent', same)
  expect([replay.status, isReplayed(replay)]).toEqual([201, true])
  expect(replay.body).toEqual(first.body)
})

test.each([
  ['another target', { long_url: `${long}/` }],
  ['an alias', { long_url: long, custom_alias: 'other' }],
  ['a TTL', { long_url: long, ttl_days: 1 }],
])('a used key with %s returns 422 and stores nothing', async (_, body) => {
  const key = JSON.stringify(body)
  expect((await createBy(key, { long_url: long })).status).toBe(201)
  const response = await createBy(key, body)
  expect([response.status, nameOf(response)]).toEqual([422, 'idempotency-key-reused'])
  expect((await client.resolve('other')).status).toBe(404)
  expect((await createBy(key, { long_url: long })).status).toBe(201)
})

test.each([
  ['empty', ''],
  ['256 characters', 'k'.repeat(256)],
  ['two words', 'one two'],
  ['not ASCII', 'caf\xe9'],
  ['sent twice', ['one', 'two']],
  ['sent twice with one value', ['same', 'same']],
])('a key that is %s returns 422 invalid-request', async (_, key) => {
  const response = await createBy(key, { long_url: long })
  expect([response.status, nameOf(response)]).toEqual([422, 'invalid-request'])
  expect(jsonOf(response)['errors']).toEqual([
    { pointer: '', code: 'invalid-idempotency-key', detail: jsonOf(response)['detail'] },
  ])
  expect(jsonOf(response)['detail']).toMatch(/^The header Idempotency-Key must have 1 to 255 /)
})

test.each(['!', '~', '"quoted"', 'k'.repeat(255)])('the key %s is valid', async (key) => {
  const first = await createBy(key, { long_url: long })
  expect(codeOf(await createBy(key, { long_url: long }))).toBe(codeOf(first))
})

test('keys are case-sensitive', async () => {
  const lower = codeOf(await createBy('case', { long_url: long }))
  expect(codeOf(await createBy('CASE', { long_url: long }))).not.toBe(lower)
})

test('a rejected body does not bind its key', async () => {
  expect((await createBy('later', { long_url: 'nonsense' })).status).toBe(422)
  expect((await createBy('later', '{')).status).toBe(400)
  const response = await createBy('later', { long_url: long })
  expect([response.status, isReplayed(response)]).toEqual([201, false])
})

test('a create of an alias is replayed after a 201 and executed after a 409', async () => {
  const body = { long_url: long, custom_alias: 'mine' }
  expect((await createBy('first', body)).status).toBe(201)
  const replay = await createBy('first', body)
  expect([replay.status, isReplayed(replay)]).toEqual([201, true])
  for (let times = 0; times < 2; times++) {
    const response = await createBy('second', body)
    expect([response.status, nameOf(response)]).toEqual([409, 'alias-taken'])
  }
})

test('a retry after a deletion replays the 201; the link stays deleted', async () => {
  for (const body of [{ long_url: long }, { long_url: long, custom_alias: 'erased' }]) {
    const key = JSON.stringify(body)
    const first = await createBy(key, body)
    const path = `${service.adminUrl}/admin/links/${codeOf(first)}`
    expect((await fetch(path, { method: 'DELETE' })).status).toBe(204)
    const replay = await createBy(key, body)
    expect([replay.status, isReplayed(replay)]).toEqual([201, true])
    expect(replay.body).toEqual(first.body)
    expect((await client.resolve(codeOf(first))).status).toBe(404)
  }
})

test('32 concurrent requests with one key create one link', async () => {
  for (const body of [{ long_url: long }, { long_url: long, custom_alias: 'parallel' }]) {
    const created = await createdLinks()
    const key = `parallel-${JSON.stringify(body)}`
    const responses = await Promise.all(Array.from({ length: 32 }, () => createBy(key, body)))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(responses.map(codeOf)).size).toBe(1)
    expect(responses.filter((response) => !isReplayed(response))).toHaveLength(1)
    expect(await createdLinks()).toBe(created + 1)
  }
})

test('32 concurrent requests with one key and two bodies create one link', async () => {
  const urls = [`${long}/a`, `${long}/b`]
  const responses = await Promise.all(
    Array.from({ length: 32 }, (_, i) => createBy('two-bodies', { long_url: urls[i % 2] })),
  )
  const created = responses.filter(({ status }) => status === 201)
  const rejected = responses.filter(({ status }) => status === 422)
  expect([created.length, rejected.length]).toEqual([16, 16])
  expect(new Set(created.map(codeOf)).size).toBe(1)
  expect(new Set(rejected.map(nameOf))).toEqual(new Set(['idempotency-key-reused']))
})
