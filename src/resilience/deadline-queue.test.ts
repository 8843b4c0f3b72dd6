// One timer for all calls: each ends at its own deadline, in any order of answers.
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from '@jest/globals'
import { createDeadlineQueue } from './deadline-queue.ts'
import { installSpans, type Spans } from '../telemetry/spans.ts'

const nowMs = () => performance.now()
const never = new Promise<string>(() => undefined)

test('an answer in time is given, and an error is thrown', async () => {
  const deadlines = createDeadlineQueue(1000, nowMs)
  expect(await deadlines.within(Promise.resolve('here'))).toBe('here')
  await expect(deadlines.within(Promise.reject(new Error('no')))).rejects.toThrow('no')
})

test('what never answers ends after its time and not before', async () => {
  const deadlines = createDeadlineQueue(30, nowMs)
  const begunMs = nowMs()
  expect(await deadlines.within(never)).toBeUndefined()
  expect(nowMs() - begunMs).toBeGreaterThanOrEqual(29)
})

test('calls that begin later end later, and answers between them are given', async () => {
  const deadlines = createDeadlineQueue(40, nowMs)
  const ended: string[] = []
  const note = (name: string) => (value: unknown) => {
    ended.push(`${name} ${String(value)}`)
  }
  const first = deadlines.within(never).then(note('first'))
  const answered = deadlines.within(Promise.resolve(1)).then(note('answered'))
  await answered
  const second = deadlines.within(never).then(note('second'))
  await Promise.all([first, second])
  expect(ended).toEqual(['answered 1', 'first undefined', 'second undefined'])
})

test('an answer that is there when the timer is late is taken', async () => {
  const deadlines = createDeadlineQueue(5, nowMs)
  const answer = new Promise<string>((resolve) => {
    setImmediate(() => {
      resolve('there')
    })
  })
  const call = deadlines.within(answer)
  const blockedUntilMs = nowMs() + 20
  while (nowMs() < blockedUntilMs); // nobody can look at a clock meanwhile
  expect(await call).toBe('there')
})

test('a call of a traced request ends within it, and one of no request within none', async () => {
  const requests = new AsyncLocalStorage<{ trace_id: string; span_id: string } | undefined>()
  installSpans({ idsNow: () => requests.getStore() } as Partial<Spans> as Spans)
  try {
    const deadlines = createDeadlineQueue(5, nowMs)
    const seen: unknown[] = []
    const wait = (trace: string | undefined) => {
      const ids = trace === undefined ? undefined : { trace_id: trace, span_id: '' }
      return new Promise<void>((resolve) => {
        requests.run(ids, () => {
          deadlines.begin(() => {
            seen.push(requests.getStore()?.trace_id)
            resolve()
          })
        })
      })
    }
    await Promise.all([wait('a'), wait(undefined), wait('b')])
    expect(seen).toEqual(['a', undefined, 'b'])
  } finally {
    installSpans(undefined)
  }
})

test('all that wait can be ended at once; what begins then has its own time', async () => {
  const deadlines = createDeadlineQueue(60_000, nowMs)
  const ended: string[] = []
  const late = (name: string) => () => ended.push(name)
  deadlines.begin(() => {
    ended.push('first')
    deadlines.begin(late('begun by the first'))
  })
  const answered = deadlines.begin(late('answered'))
  const other = deadlines.within(never)
  deadlines.end(answered)
  expect(deadlines.expireAll()).toBe(2)
  expect(await other).toBeUndefined()
  expect(ended).toEqual(['first'])
  deadlines.expireAll()
  expect(ended).toEqual(['first', 'begun by the first'])
})
