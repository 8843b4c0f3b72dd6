// Signals: the first stops gently, an echo of it is ignored, a second one ends the process at once.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { stopInTurn, stopOnSignal } from './stop.ts'

const listeners = new Map<string, (signal: NodeJS.Signals) => void>()
let nowMs = 0
const exits: unknown[] = []

beforeEach(() => {
  exits.length = 0
  // No stop is abandoned in earnest: that would end the process of the tests.
  jest.useFakeTimers({ doNotFake: ['performance', 'setImmediate'] })
  jest.spyOn(process, 'on').mockImplementation((name, listener) => {
    listeners.set(String(name), listener as (signal: NodeJS.Signals) => void)
    return process
  })
  jest.spyOn(process, 'exit').mockImplementation((code) => {
    exits.push(code)
    return undefined as never
  })
  jest.spyOn(process, 'kill').mockImplementation((_, signal) => {
    exits.push(signal)
    return true
  })
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
})
afterEach(() => {
  jest.restoreAllMocks()
  jest.useRealTimers()
})

/** A process whose stopping ends when the test says so. */
function started() {
  const seen = { stops: 0, failures: [] as unknown[] }
  let end: (code: number) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const stop = () => {
    seen.stops++
    return new Promise<number>((resolve, reject) => {
      end = resolve
      fail = reject
    })
  }
  stopOnSignal({
    stop,
    onFailure: (error) => seen.failures.push(error),
    onLate: (ms) => seen.failures.push(ms),
  })
  const signal = (name: NodeJS.Signals) => listeners.get(name)?.(name)
  return {
    seen,
    signal,
    end: (code = 0) => {
      end(code)
    },
    fail: (error: Error) => {
      fail(error)
    },
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test.each(['SIGTERM', 'SIGINT'] as const)('%s stops gently, then ends with 0', async (name) => {
  const { seen, signal, end } = started()
  signal(name)
  await settled()
  expect([seen.stops, exits]).toEqual([1, []])
  end()
  await settled()
  expect(exits).toEqual([0])
})

test('a command that was cut short ends with its own code', async () => {
  const { signal, end } = started()
  signal('SIGTERM')
  end(1)
  await settled()
  expect(exits).toEqual([1])
})

test('a stop that fails is reported and ends with 1', async () => {
  const { seen, signal, fail } = started()
  signal('SIGTERM')
  fail(new Error('no'))
  await settled()
  expect([seen.failures, exits]).toEqual([[new Error('no')], [1]])
})

test('a stop that hangs is abandoned in time', () => {
  const { seen, signal } = started()
  signal('SIGTERM')
  jest.advanceTimersByTime(6999)
  expect(exits).toEqual([])
  jest.advanceTimersByTime(1)
  expect([seen.failures, exits]).toEqual([[7000], ['SIGKILL']])
})

test('the echo of a Ctrl-C is no second signal', () => {
  const { seen, signal } = started()
  nowMs = 1000
  signal('SIGINT')
  nowMs = 1100
  signal('SIGINT')
  signal('SIGTERM')
  expect([seen.stops, exits]).toEqual([1, []])
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a second %s ends the process at once', (name, code) => {
  const { seen, signal } = started()
  nowMs = 1000
  signal('SIGTERM')
  nowMs = 1101
  signal(name)
  expect([seen.stops, exits]).toEqual([1, [code]])
})

test('every part is stopped in turn, also after one that fails; its error is thrown', async () => {
  const order: string[] = []
  const part = (name: string, error?: Error) => () => {
    order.push(name)
    return error === undefined ? Promise.resolve() : Promise.reject(error)
  }
  const parts = [part('a'), part('b', new Error('b')), part('c', new Error('c')), part('d')]
  await expect(stopInTurn(parts)).rejects.toThrow('b')
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})
