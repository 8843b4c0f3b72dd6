// One timer for all calls: each times out at its own deadline, in any order of completion.
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, jest, test } from '@jest/globals'
import { createDeadlineQueue } from './deadline-queue.ts'
import { installSpans, type Spans } from '../telemetry/spans.ts'

const nowMs = () => performance.now()
const never = new Promise<string>(() => undefined)

test('a result before the deadline is returned, and an error is thrown', async () => {
  const deadlines = createDeadlineQueue(1000, nowMs)
  expect(await deadlines.within(Promise.resolve('result'))).toBe('result')
  await expect(deadlines.within(Promise.reject(new Error('no')))).rejects.toThrow('no')
})

test('a call that never completes times out at its deadline and not before', async () => {
  const deadlines = createDeadlineQueue(30, nowMs)
  const startMs = nowMs()
  expect(await deadlines.within(never)).toBeUndefined()
  expect(nowMs() - startMs).toBeGreaterThanOrEqual(29)
})

test('calls time out in the order they started; a call between them completes', async () => {
  const deadlines = createDeadlineQueue(40, nowMs)
  const settled: string[] = []
  const note = (name: string) => (value: unknown) => {
    settled.push(`${name} ${String(value)}`)
  }
  const first = deadlines.within(never).then(note('first'))
  const completed = deadlines.within(Promise.resolve(1)).then(note('completed'))
  await completed
  const second = deadlines.within(never).then(note('second'))
  await Promise.all([first, second])
  expect(settled).toEqual(['completed 1', 'first undefined', 'second undefined'])
})

test('a call that started later times out at its own deadline', async () => {
  jest.useFakeTimers()
  try {
    const deadlines = createDeadlineQueue(30, nowMs)
    const timedOut: string[] = []
    deadlines.add(() => timedOut.push('first'))
    await jest.advanceTimersByTimeAsync(20)
    deadlines.add(() => timedOut.push('second'))
    await jest.advanceTimersByTimeAsync(29)
    expect(timedOut).toEqual(['first'])
    await jest.advanceTimersByTimeAsync(2) // fake setImmediate callbacks take 1 ms
    expect(timedOut).toEqual(['first', 'second'])
  } finally {
    jest.useRealTimers()
  }
})

test('a result that arrived before a delayed timer fires is returned', async () => {
  const deadlines = createDeadlineQueue(5, nowMs)
  const result = new Promise<string>((resolve) => {
    setImmediate(() => {
      resolve('result')
    })
  })
  const call = deadlines.within(result)
  const blockedUntilMs = nowMs() + 20
  while (nowMs() < blockedUntilMs); // blocks the event loop beyond the deadline
  expect(await call).toBe('result')
})

test('a timeout runs in the trace of its own request, or in none', async () => {
  const requests = new AsyncLocalStorage<{ trace_id: string; span_id: string } | undefined>()
  installSpans({ currentIds: () => requests.getStore() } as Partial<Spans> as Spans)
  try {
    const deadlines = createDeadlineQueue(5, nowMs)
    const seen: unknown[] = []
    const wait = (trace: string | undefined) => {
      const ids = trace === undefined ? undefined : { trace_id: trace, span_id: '' }
      return new Promise<void>((resolve) => {
        requests.run(ids, () => {
          deadlines.add(() => {
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

test('expireAll() times out all pending calls, not those that their handlers add', async () => {
  const deadlines = createDeadlineQueue(60_000, nowMs)
  const timedOut: string[] = []
  const note = (name: string) => () => timedOut.push(name)
  deadlines.add(() => {
    timedOut.push('first')
    deadlines.add(note('added by the first'))
  })
  const completed = deadlines.add(note('completed'))
  const other = deadlines.within(never)
  deadlines.remove(completed)
  expect(deadlines.expireAll()).toBe(2)
  expect(await other).toBeUndefined()
  expect(timedOut).toEqual(['first'])
  deadlines.expireAll()
  expect(timedOut).toEqual(['first', 'added by the first'])
})

test('a removed call refers to no other call, and is removed once', () => {
  const deadlines = createDeadlineQueue(60_000, nowMs)
  const timedOut: number[] = []
  const calls = [0, 1, 2].map((n) => deadlines.add(() => timedOut.push(n)))
  const [first, middle, last] = calls
  if (first === undefined || middle === undefined || last === undefined) throw new Error('3 calls')
  for (const call of [middle, first, last]) {
    expect(deadlines.remove(call)).toBe(true)
    expect(Object.values(call).filter((value) => typeof value === 'object')).toEqual([call, call])
    expect(deadlines.remove(call)).toBe(false)
  }
  const more = [3, 4, 5].map((n) => deadlines.add(() => timedOut.push(n)))
  deadlines.remove(more[1] ?? first)
  expect(deadlines.expireAll()).toBe(2)
  expect(timedOut).toEqual([3, 5])
})
