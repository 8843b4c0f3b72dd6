// Events: which are counted in an existing event, which are dropped, and how many may be pending.
import { beforeEach, expect, test } from '@jest/globals'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import type { KubeApi } from './api.ts'
import { createEventRecorder, type EventRecorder, type EventInput } from './events.ts'
import { KubeError } from './kube-error.ts'

type Call = Parameters<KubeApi['call']>[0]

const regarding = { apiVersion: 'a/v1', kind: 'K', namespace: 'n', name: 'o', uid: 'u' }
const MINUTE_MS = 60_000
let nowMs: number
let wallMs: number
let mayWrite: boolean
let calls: Call[]
/** The result of a call. */
let respond: (call: Call) => Promise<unknown>
let metrics: Metrics
let events: EventRecorder

beforeEach(() => {
  nowMs = 1000
  wallMs = 1_000_000_000_000
  mayWrite = true
  calls = []
  respond = () => Promise.resolve({})
  metrics = createMetrics()
  events = createEventRecorder({
    api: {
      call(call) {
        calls.push(call)
        return respond(call)
      },
    },
    ...{
      controller: 'c',
      instance: 'i'.repeat(200),
      nowMs: () => nowMs,
      wallMs: () => wallMs + nowMs,
      metrics,
    },
    ...{ log: { debug: () => undefined }, mayWrite: () => mayWrite },
  })
})

const emit = (note: string, of: Partial<EventInput['regarding']> = {}) => {
  const object = { ...regarding, ...of }
  events.emit({ regarding: object, type: 'Normal', reason: 'R', action: 'A', note })
}
/** Emits `count` events of as many objects, so that no object's bucket is empty. */
const emitMany = (count: number) => {
  for (let i = 0; i < count; i++) emit('note', { uid: `u${i}`, name: `o${i}` })
}
const dropped = async (reason: string) => {
  const { values } = await metrics.eventsDropped.get()
  return values.find(({ labels }) => labels.reason === reason)?.value ?? 0
}
const methods = () => calls.map(({ method }) => method).join(' ')

test('a duplicate within ten minutes is counted; a count is written once a minute', async () => {
  emit('one')
  nowMs += MINUTE_MS - 1
  emit('one')
  await events.flush()
  expect(methods()).toBe('POST')
  nowMs += 1
  emit('one') // a minute after the event was written
  nowMs += MINUTE_MS - 1
  emit('one') // less than a minute after the count was written
  await events.flush()
  expect(methods()).toBe('POST PATCH')
  expect(calls[1]?.body).toMatchObject({ series: { count: 3 } })
  expect(calls[1]?.path).toMatch(/\/events\/o\.[0-9a-f]{16}$/)
  for (let i = 0; i < 3; i++) {
    nowMs += 10 * MINUTE_MS
    emit('one')
  }
  await events.flush()
  expect(methods()).toBe('POST PATCH PATCH PATCH PATCH')
  nowMs += 10 * MINUTE_MS + 1
  emit('one')
  await events.flush()
  expect(methods()).toBe('POST PATCH PATCH PATCH PATCH POST')
  const names = calls
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => (body as { metadata: { name: string } }).metadata.name)
  expect(new Set(names).size).toBe(2)
})

test('a system clock that is set back does not prevent writes of events and counts', async () => {
  emit('one')
  wallMs -= 3 * 3600_000
  nowMs += MINUTE_MS
  emit('one')
  emit('two')
  await events.flush()
  expect([methods(), await dropped('too-many')]).toEqual(['POST PATCH POST', 0])
  const eventTime = new Date(wallMs + nowMs).toISOString().replace('Z', '000Z')
  expect(calls[1]?.body).toMatchObject({ series: { count: 2, lastObservedTime: eventTime } })
  expect(calls[2]?.body).toMatchObject({ eventTime })
})

test('an event with another note or another object is separate', async () => {
  emit('one')
  emit('two')
  emit('one', { uid: 'v' })
  await events.flush()
  expect(methods()).toBe('POST POST POST')
})

test('an object may have 25 events in a burst, then one every five minutes', async () => {
  for (let i = 0; i < 27; i++) emit(`note ${i}`)
  emit('other', { uid: 'v' })
  await events.flush()
  expect([calls.length, await dropped('too-many')]).toEqual([26, 2])
  nowMs += 5 * MINUTE_MS - 1
  emit('too early')
  nowMs += 1
  emit('on time')
  emit('too early for another')
  await events.flush()
  expect([calls.length, await dropped('too-many')]).toEqual([27, 4])
  nowMs += 24 * 3600_000 // the bucket never holds more than 25 tokens
  for (let i = 0; i < 26; i++) emit(`later ${i}`)
  await events.flush()
  expect([calls.length, await dropped('too-many')]).toEqual([52, 5])
})

test('500 events may be pending; the next is dropped until a write completes', async () => {
  const held = Promise.withResolvers<object>()
  respond = () => held.promise
  emitMany(500)
  await Promise.resolve()
  expect(await dropped('queue-full')).toBe(0)
  emit('one too many')
  expect(await dropped('queue-full')).toBe(1)
  held.resolve({})
  await events.flush()
  expect(calls).toHaveLength(500)
  emitMany(1000)
  await events.flush()
  expect(await dropped('queue-full')).toBe(1)
  for (let i = 0; i < 499; i++) emit('more', { uid: `x${i}` })
  await events.flush()
  expect([calls.length, await dropped('queue-full')]).toEqual([1499, 1])
})

test('leadership is checked before each write, not when an event is emitted', async () => {
  const held = Promise.withResolvers<object>()
  respond = () => held.promise
  emit('one')
  emit('two')
  await new Promise((resolve) => setImmediate(resolve))
  mayWrite = false // while the first is being written
  held.resolve({})
  await events.flush()
  expect([calls.length, await dropped('not-leading')]).toEqual([1, 1])
  emit('three')
  mayWrite = true
  await events.flush()
  expect([calls.length, await dropped('not-leading')]).toEqual([2, 1])
})

test('an existing event counts as written; a failed write is counted as dropped', async () => {
  const statuses = [409, 500]
  respond = () => {
    const status = statuses.shift()
    if (status === undefined) return Promise.resolve({})
    return Promise.reject(new KubeError('no', { status, reason: 'R' }))
  }
  for (const note of ['one', 'two', 'three']) emit(note)
  await events.flush()
  expect([calls.length, await dropped('failed')]).toEqual([3, 1])
})

test('an event that was not written is created by a duplicate one minute later', async () => {
  respond = () => Promise.reject(new KubeError('no', { status: 503, reason: 'R' }))
  emit('one')
  await events.flush()
  mayWrite = false
  emit('two')
  await events.flush()
  mayWrite = true
  respond = () => Promise.resolve({})
  for (const stepMs of [MINUTE_MS - 1, 1, MINUTE_MS]) {
    nowMs += stepMs
    for (const note of ['one', 'two']) emit(note)
    await events.flush()
  }
  expect(methods()).toBe('POST POST POST PATCH PATCH')
  expect(calls.slice(1).map(({ body }) => body)).toMatchObject([
    { note: 'one', series: { count: 3 } },
    { note: 'two', series: { count: 3 } },
    { series: { count: 4 } },
    { series: { count: 4 } },
  ])
  const [failed, created] = calls.map(({ body }) => body as { metadata?: object })
  expect(created?.metadata).toEqual(failed?.metadata)
})

test('a deleted event is created by the second duplicate after the deletion', async () => {
  const statuses = [200, 404, 200, 200]
  respond = () => {
    const status = statuses.shift() ?? 500
    if (status === 200) return Promise.resolve({})
    return Promise.reject(new KubeError('no', { status, reason: 'R' }))
  }
  for (let i = 0; i < 4; i++) {
    emit('one')
    await events.flush()
    nowMs += MINUTE_MS
  }
  expect([methods(), await dropped('failed')]).toEqual(['POST PATCH POST PATCH', 1])
})

test('a write has a deadline, and no field exceeds the bounds of the API server', async () => {
  emit('x'.repeat(2000), { name: 'o'.repeat(253) })
  await events.flush()
  const { body, msMax } = calls[0] ?? {}
  const event = body as { metadata: { name: string }; note: string; reportingInstance: string }
  expect(event.note).toHaveLength(1000)
  expect(event.reportingInstance).toHaveLength(128)
  expect(event.metadata.name.length).toBeLessThanOrEqual(253)
  expect(msMax).toBe(5000)
})
