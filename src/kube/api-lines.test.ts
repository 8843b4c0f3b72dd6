// Streams of lines of the API client, over a transport whose chunks the test defines.
import { getEventListeners } from 'node:events'
import { beforeEach, expect, test } from '@jest/globals'
import { createFakeScheduler, type FakeScheduler } from '../../test/kit/fake-scheduler.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createKubeApi } from './api.ts'
import { untilAborted } from './scheduler.ts'
import type { KubeRequest, KubeResponse } from './transport.ts'

const MEBIBYTE = 1024 * 1024
const IDLE_MS = 1000

let scheduler: FakeScheduler
let requests: KubeRequest[]
let respond: (request: KubeRequest) => Promise<KubeResponse>
let stopping: AbortController
let opened: number

type Chunks = readonly (string | Buffer)[]

/** Yields the chunks, each after `ms`; then the stream closes, or hangs until it is aborted. */
const streaming =
  (chunks: Chunks, { ms = 0, hangs = false } = {}): typeof respond =>
  ({ signal }) => {
    async function* body(): AsyncGenerator<Buffer, void> {
      for (const chunk of chunks) {
        if (ms > 0) await new Promise<void>((resolve) => scheduler.after(ms, resolve))
        yield Buffer.from(chunk)
      }
      if (!hangs) return
      await untilAborted(signal)
      throw new Error('connection closed')
    }
    return Promise.resolve({ status: 200, headers: {}, body: body() })
  }

beforeEach(() => {
  scheduler = createFakeScheduler()
  stopping = new AbortController()
  requests = []
  opened = 0
})

const open = (more: { accept?: string } = {}) => {
  const send = (request: KubeRequest) => {
    requests.push(request)
    return respond(request)
  }
  const metrics = createMetrics()
  const api = createKubeApi({ transport: { send, host: () => 'h' }, scheduler, metrics })
  return api.lines({
    ...{ path: '/x', query: { watch: 'true' }, idleMsMax: IDLE_MS, signal: stopping.signal },
    onOpen: () => opened++,
    ...more,
  })
}

/** Reads to the end; returns the lines, and the error if the stream fails. */
async function readAll(chunks: AsyncGenerator<string, void>) {
  const lines: string[] = []
  try {
    for await (const line of chunks) lines.push(line)
    return { lines, error: undefined }
  } catch (error) {
    return { lines, error }
  }
}

test('yields the lines of all chunks, however they are split', async () => {
  const euro = Buffer.from('€')
  const split = [Buffer.concat([Buffer.from('d'), euro.subarray(0, 1)]), euro.subarray(1)]
  respond = streaming(['a', 'b', '\n\nc\n', ...split, '\ne\n'])
  expect(await readAll(open())).toEqual({ lines: ['ab', 'c', 'd€', 'e'], error: undefined })
  expect([opened, requests.length]).toEqual([1, 1])
})

test('requests a stream for a cache, with the media type if one is given', async () => {
  respond = streaming([])
  await readAll(open())
  await readAll(open({ accept: 'application/yaml' }))
  const sent = requests.map(({ method, path, isForCache, accept }) => {
    return { method, path, isForCache, ...(accept !== undefined && { accept }) }
  })
  const expected = { method: 'GET', path: '/x?watch=true', isForCache: true }
  expect(sent).toEqual([expected, { ...expected, accept: 'application/yaml' }])
})

test('an incomplete last line is an invalid response, after the lines before it', async () => {
  respond = streaming(['a\nb'])
  const { lines, error } = await readAll(open())
  expect([lines, error]).toMatchObject([['a'], { status: 0, reason: 'InvalidResponse' }])
})

test('a line may have 8 MiB, not more', async () => {
  const chunk = 'a'.repeat(MEBIBYTE * 8)
  respond = streaming([chunk, '\n'])
  const { lines } = await readAll(open())
  expect(lines.map(({ length }) => length)).toEqual([8 * MEBIBYTE])
  respond = streaming([`${chunk}a`, '\n'])
  const { error } = await readAll(open())
  expect(error).toMatchObject({ status: 0, reason: 'InvalidResponse' })
})

test.each([
  [299, undefined],
  [300, { status: 300 }],
  [410, { status: 410, reason: 'Unknown' }],
])('a response with status %i results in the error %j', async (status, expected) => {
  respond = () => {
    async function* body(): AsyncGenerator<Buffer, void> {
      yield await Promise.resolve(Buffer.from('{}\n'))
    }
    return Promise.resolve({ status, headers: {}, body: body() })
  }
  const { error } = await readAll(open())
  if (expected === undefined) expect(error).toBeUndefined()
  else expect(error).toMatchObject(expected)
  expect(opened).toBe(expected === undefined ? 1 : 0)
})

test('a stream without data times out, measured from the last chunk', async () => {
  respond = streaming(['a\n', 'b\n'], { ms: IDLE_MS - 1, hangs: true })
  const reading = readAll(open())
  await scheduler.advance(2 * (IDLE_MS - 1))
  await scheduler.advance(IDLE_MS - 1)
  expect(requests[0]?.signal.aborted).toBe(false)
  await scheduler.advance(1)
  const { lines, error } = await reading
  expect(lines).toEqual(['a', 'b'])
  expect(error).toMatchObject({ reason: 'Timeout', message: `no data for ${IDLE_MS} ms` })
  expect(scheduler.waiting()).toBe(0)
})

test('an aborted stream closes its connection, and is no timeout', async () => {
  respond = streaming(['a\n'], { hangs: true })
  const reading = readAll(open())
  await scheduler.advance(0)
  expect(requests[0]?.signal.aborted).toBe(false)
  stopping.abort()
  expect(requests[0]?.signal.aborted).toBe(true)
  expect(await reading).toMatchObject({ lines: ['a'], error: { reason: 'Unreachable' } })
})

test('a stream that is aborted before it opens sends an aborted request', async () => {
  stopping.abort()
  respond = ({ signal }) =>
    Promise.reject(new Error(signal.aborted ? 'request aborted' : 'request sent'))
  const { error } = await readAll(open())
  expect(error).toMatchObject({ reason: 'Unreachable', cause: new Error('request aborted') })
})

test('closes the connection, the timer and the listener if the caller stops reading', async () => {
  respond = streaming(['a\nb\n'], { hangs: true })
  for await (const line of open()) {
    expect([line, scheduler.waiting()]).toEqual(['a', 1])
    expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(1)
    break
  }
  expect(requests[0]?.signal.aborted).toBe(true)
  expect([scheduler.waiting(), getEventListeners(stopping.signal, 'abort')]).toEqual([0, []])
})
