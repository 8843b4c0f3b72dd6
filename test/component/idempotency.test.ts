// The header Idempotency-Key of POST /v1/urls, on the real standalone process: what is a repeat,
// what is another request, and that many at once make one link.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Client, codeOf, openClient } from './client.ts'
import { type Answer, headerOf, jsonOf } from './raw-http.ts'
import { type Standalone, startStandalone } from './standalone.ts'

const START_MS_MAX = 30_000

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
const nameOf = (answer: Answer) => String(jsonOf(answer)['type']).split('/').at(-1)
const isReplayed = (answer: Answer) => headerOf(answer, 'Idempotency-Replayed') === 'true'

/** How many links the store has been asked to hold, by the metric of claims that were won. */
async function linksMade(): Promise<number> {
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
  return Number(/^curtail_creates_total\{result="created"\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

test('the same body again answers the same 201, told as a repeat, and makes nothing', async () => {
  const body = { long_url: long, ttl_days: 3 }
  const first = await createBy('again', body)
  expect([first.status, isReplayed(first)]).toEqual([201, false])
  const made = await linksMade()
  for (let times = 0; times < 3; times++) {
    const next = await createBy('again', body)
    expect([next.status, isReplayed(next)]).toEqual([201, true])
    expect(next.body).toEqual(first.body)
    expect(headerOf(next, 'Location')).toBe(headerOf(first, 'Location'))
  }
  expect(await linksMade()).toBe(made)
})

test('a body that means the same is the same body', async () => {
  const first = await createBy('meaning', { long_url: long, ttl_days: 1 })
  const same = ` {"ttl_days": 1.0, "custom_alias": null, "long_url": "${long}"}`
  const next = await createBy('meaning', same)
  expect([next.status, isReplayed(next)]).toEqual([201, true])
  expect(next.body).toEqual(first.body)
})

test.each([
  ['another target', { long_url: `${long}/` }],
  ['an alias', { long_url: long, custom_alias: 'other' }],
  ['a life', { long_url: long, ttl_days: 1 }],
])('%s is another body: 422, and nothing is stored', async (_, body) => {
  const key = JSON.stringify(body)
  expect((await createBy(key, { long_url: long })).status).toBe(201)
  const answer = await createBy(key, body)
  expect([answer.status, nameOf(answer)]).toEqual([422, 'idempotency-key-reused'])
  expect((await client.follow('other')).status).toBe(404)
  expect((await createBy(key, { long_url: long })).status).toBe(201)
})

test.each([
  ['empty', ''],
  ['256 characters', 'k'.repeat(256)],
  ['two words', 'one two'],
  ['not ASCII', 'caf\xe9'],
  ['given twice', ['one', 'two']],
  ['given twice alike', ['same', 'same']],
])('a key that is %s: 422 invalid-request', async (_, key) => {
  const answer = await createBy(key, { long_url: long })
  expect([answer.status, nameOf(answer)]).toEqual([422, 'invalid-request'])
  expect(jsonOf(answer)['errors']).toEqual([
    { pointer: '', code: 'invalid-idempotency-key', detail: jsonOf(answer)['detail'] },
  ])
  expect(jsonOf(answer)['detail']).toMatch(/^The header Idempotency-Key must have 1 to 255 /)
})

test.each(['!', '~', '"quoted"', 'k'.repeat(255)])('the key %s is one', async (key) => {
  const first = await createBy(key, { long_url: long })
  expect(codeOf(await createBy(key, { long_url: long }))).toBe(codeOf(first))
})

test('keys in another case are other keys', async () => {
  const lower = codeOf(await createBy('case', { long_url: long }))
  expect(codeOf(await createBy('CASE', { long_url: long }))).not.toBe(lower)
})

test('a refused body does not use up its key', async () => {
  expect((await createBy('later', { long_url: 'nonsense' })).status).toBe(422)
  expect((await createBy('later', '{')).status).toBe(400)
  const answer = await createBy('later', { long_url: long })
  expect([answer.status, isReplayed(answer)]).toEqual([201, false])
})

test('an alias: 409 is tried again, and a repeat of 201 finds its own', async () => {
  const body = { long_url: long, custom_alias: 'mine' }
  expect((await createBy('first', body)).status).toBe(201)
  const repeat = await createBy('first', body)
  expect([repeat.status, isReplayed(repeat)]).toEqual([201, true])
  for (let times = 0; times < 2; times++) {
    const answer = await createBy('second', body)
    expect([answer.status, nameOf(answer)]).toEqual([409, 'alias-taken'])
  }
})

test('the same 201 comes after the link was deleted; the link stays deleted', async () => {
  for (const body of [{ long_url: long }, { long_url: long, custom_alias: 'gone' }]) {
    const key = JSON.stringify(body)
    const first = await createBy(key, body)
    const path = `${service.adminUrl}/admin/links/${codeOf(first)}`
    expect((await fetch(path, { method: 'DELETE' })).status).toBe(204)
    const again = await createBy(key, body)
    expect([again.status, isReplayed(again)]).toEqual([201, true])
    expect(again.body).toEqual(first.body)
    expect((await client.follow(codeOf(first))).status).toBe(404)
  }
})

test('32 at once with one key make one link', async () => {
  for (const body of [{ long_url: long }, { long_url: long, custom_alias: 'at-once' }]) {
    const made = await linksMade()
    const key = `at once ${JSON.stringify(body)}`.replaceAll(' ', '-')
    const answers = await Promise.all(Array.from({ length: 32 }, () => createBy(key, body)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(codeOf)).size).toBe(1)
    expect(answers.filter((answer) => !isReplayed(answer))).toHaveLength(1)
    expect(await linksMade()).toBe(made + 1)
  }
})

test('32 at once with one key and two bodies make one link', async () => {
  const urls = [`${long}/a`, `${long}/b`]
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, i) => createBy('two-bodies', { long_url: urls[i % 2] })),
  )
  const made = answers.filter(({ status }) => status === 201)
  const refused = answers.filter(({ status }) => status === 422)
  expect([made.length, refused.length]).toEqual([16, 16])
  expect(new Set(made.map(codeOf)).size).toBe(1)
  expect(new Set(refused.map(nameOf))).toEqual(new Set(['idempotency-key-reused']))
})
