// Calls of the API client, over a transport whose responses the test defines, on a fake clock.
import { getEventListeners } from 'node:events'
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { createKubeApi, type KubeApi, ResponseTooLong } from './api.ts'
import { KubeError } from './kube-error.ts'
import { untilAborted } from './scheduler.ts'
import type { KubeRequest, KubeResponse } from './transport.ts'

const MEBIBYTE = 1024 * 1024

let scheduler: FakeScheduler
let metrics: Metrics
let api: KubeApi
let requests: KubeRequest[]
/** The response to each request. */
let respond: (request: KubeRequest) => Promise<KubeResponse>

async function* bodyOf(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer, void> {
  for (const chunk of chunks) yield await Promise.resolve(Buffer.from(chunk))
}
const responding =
  (
    status: number,
    chunks: readonly (string | Buffer)[],
    headers: KubeResponse['headers'] = {},
  ): typeof respond =>
  () =>
    Promise.resolve({ status, headers, body: bodyOf(chunks) })
const hanging: typeof respond = async ({ signal }) => {
  await untilAborted(signal)
  throw new Error('connection closed')
}

beforeEach(() => {
  scheduler = createFakeScheduler()
  metrics = createMetrics()
  requests = []
  respond = responding(200, ['{}'])
  const send = (request: KubeRequest) => {
    requests.push(request)
    return respond(request)
  }
  api = createKubeApi({ transport: { send, host: () => 'h:1' }, scheduler, metrics })
})

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )
const get = (more: object = {}) => api.call({ method: 'GET', path: '/x', ...more })

test('sends the path, the query and a JSON body', async () => {
  respond = responding(201, ['{"a":', '"é"}'])
  const query = { a: 'b c', d: '&' }
  expect(await api.call({ method: 'POST', path: '/x', query, body: { one: 1 } })).toEqual({
    a: 'é',
  })
  expect(requests).toMatchObject([
    {
      ...{ method: 'POST', path: '/x?a=b+c&d=%26', isForCache: false },
      ...{ body: '{"one":1}', contentType: 'application/json' },
    },
  ])
})

test('sends no query, body, media type or content type by default', async () => {
  await get()
  const [{ signal, ...request }] = requests as [KubeRequest]
  expect(request).toEqual({ method: 'GET', path: '/x', isForCache: false })
  expect(signal.aborted).toBe(false)
})

test('sends the given media type and content type, and marks lists for caches', async () => {
  await api.call({
    ...{ method: 'PATCH', path: '/x', body: [], contentType: 'application/merge-patch+json' },
    ...{ accept: 'application/yaml', isForCache: true },
  })
  expect(requests).toMatchObject([
    { contentType: 'application/merge-patch+json', accept: 'application/yaml', isForCache: true },
  ])
})

test('counts each response by its status, and each failed request', async () => {
  await get()
  respond = responding(503, [''])
  await failureOf(get())
  respond = () => Promise.reject(new Error('reset'))
  await failureOf(get())
  const { values } = await metrics.apiRequests.get()
  expect(values.map(({ labels, value }) => [labels.code, labels.host, value])).toEqual([
    ['200', 'h:1', 1],
    ['503', 'h:1', 1],
    ['<error>', 'h:1', 1],
  ])
})

test.each([
  [{}, 10_000],
  [{ msMax: 250 }, 250],
])('a call %j without a response times out after %i ms', async (more, ms) => {
  respond = hanging
  const failure = failureOf(get(more))
  await scheduler.advance(ms - 1)
  expect(requests[0]?.signal.aborted).toBe(false)
  await scheduler.advance(1)
  expect(await failure).toMatchObject({
    ...{ status: 0, reason: 'Timeout', message: `GET /x timed out after ${ms} ms` },
    cause: new Error('connection closed'),
  })
})

test('an aborted call fails without a timeout', async () => {
  respond = hanging
  const stopping = new AbortController()
  const failure = failureOf(get({ signal: stopping.signal }))
  stopping.abort()
  expect(await failure).toMatchObject({ status: 0, reason: 'Unreachable' })
})

test('keeps no timer and no listener after a call', async () => {
  const { signal } = new AbortController()
  await get({ signal })
  respond = responding(500, [''])
  await failureOf(get({ signal }))
  expect([scheduler.waiting(), getEventListeners(signal, 'abort')]).toEqual([0, []])
})

test.each([
  [299, undefined],
  [300, 300],
  [404, 404],
])('a response with status %i results in the error %p', async (status, expected) => {
  respond = responding(status, ['{}'])
  const error = await failureOf(get())
  expect(error instanceof KubeError ? error.status : error).toBe(expected)
})

test('an error has the fields of a status document', async () => {
  const document = { kind: 'Status', code: 409, reason: 'AlreadyExists', message: 'exists' }
  respond = responding(409, [JSON.stringify(document)])
  const expected = { status: 409, reason: 'AlreadyExists', message: 'exists' }
  expect(await failureOf(get())).toMatchObject(expected)
})

test.each<readonly [string | undefined, number | undefined]>([
  ['7', 7000],
  [undefined, undefined],
  ['Wed, 21 Oct 2015 07:28:00 GMT', undefined],
])('the header Retry-After: %s requests a delay of %p ms', async (value, expected) => {
  for (const body of ['{}', 'overloaded']) {
    respond = responding(429, [body], { 'retry-after': value })
    expect(await failureOf(get())).toMatchObject({ status: 429, retryAfterMs: expected })
  }
})

test('an error that is not JSON has the first 200 characters of the response', async () => {
  respond = responding(502, [`${'a'.repeat(200)}b`])
  expect(await failureOf(get())).toMatchObject({
    ...{ status: 502, reason: 'Unknown' },
    message: `the API server returned 502: ${'a'.repeat(200)}`,
  })
})

test('a response that is not JSON is invalid', async () => {
  respond = responding(200, ['<html>'])
  expect(await failureOf(get())).toMatchObject({ status: 0, reason: 'InvalidResponse' })
})

test('a page for a cache has at most 8 MiB, other responses may have more', async () => {
  const padding = Array.from({ length: 8 }, () => Buffer.alloc(MEBIBYTE, ' '))
  respond = responding(200, ['{}', ...padding.slice(1), Buffer.alloc(MEBIBYTE - 2, ' ')])
  expect(await get({ isForCache: true })).toEqual({})
  respond = responding(200, ['{}', ...padding])
  expect(await failureOf(get({ isForCache: true }))).toBeInstanceOf(ResponseTooLong)
  expect(await get()).toEqual({})
})
