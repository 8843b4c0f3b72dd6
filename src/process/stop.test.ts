// Signals: the first stops gracefully, its duplicate is ignored, a second one exits immediately.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { stopInTurn, stopOnSignal } from './stop.ts'

const listeners = new Map<string, (signal: NodeJS.Signals) => void>()
let nowMs = 0
const exits: unknown[] = []
/** What the process is busy with. */
let resources: string[] = []

beforeEach(() => {
  exits.length = 0
  resources = []
  // A stop that times out in real time would kill the test process.
  jest.useFakeTimers({ doNotFake: ['performance', 'setImmediate'] })
  jest.spyOn(process, 'on').mockImplementation((name, listener) => {
    listeners.set(String(name), listener as (signal: NodeJS.Signals) => void)
    return process
  })
  jest.spyOn(process, 'exit').mockImplementation((code) => {
    exits.push(code)
    return undefined as never
  })
  // Reached only where the signal has no effect: the kernel ignores it in PID 1.
  jest.spyOn(process, 'execve').mockImplementation((_, args) => {
    exits.push(args?.at(-1))
    return undefined as never
  })
  jest.spyOn(process, 'getActiveResourcesInfo').mockImplementation(() => resources)
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

/** A process whose stop the test completes. */
function startProcess(msMax?: () => number | undefined) {
  const seen = { stops: 0, failures: [] as unknown[] }
  let complete: (code: number) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const stop = () => {
    seen.stops++
    return new Promise<number>((resolve, reject) => {
      complete = resolve
      fail = reject
    })
  }
  stopOnSignal({
    stop,
    onFailure: (error) => seen.failures.push(error),
    onTimeout: (ms) => seen.failures.push(ms),
    ...(msMax !== undefined && { msMax }),
  })
  const signal = (name: NodeJS.Signals) => listeners.get(name)?.(name)
  return {
    seen,
    signal,
    complete: (code = 0) => {
      complete(code)
    },
    fail: (error: Error) => {
      fail(error)
    },
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s stops gracefully, then exits with 0',
  async (name) => {
    const { seen, signal, complete } = startProcess()
    signal(name)
    await settled()
    expect([seen.stops, exits]).toEqual([1, []])
    complete()
    await settled()
    expect(exits).toEqual([0])
  },
)

test('an interrupted command exits with its own code', async () => {
  const { signal, complete } = startProcess()
  signal('SIGTERM')
  complete(1)
  await settled()
  expect(exits).toEqual([1])
})

test('a failed stop is reported and exits with 1', async () => {
  const { seen, signal, fail } = startProcess()
  signal('SIGTERM')
  fail(new Error('no'))
  await settled()
  expect([seen.failures, exits]).toEqual([[new Error('no')], [1]])
})

test.each(['FSReqPromise', 'FSReqCallback', 'FileHandleCloseReq', 'GetAddrInfoReqWrap'])(
  'a stopped process exits when its threads are idle: %s',
  async (resource) => {
    resources = ['TCPSocketWrap', resource]
    const { signal, complete } = startProcess()
    signal('SIGTERM')
    complete(0)
    await settled()
    jest.advanceTimersByTime(100)
    expect(exits).toEqual([])
    resources = ['TCPSocketWrap']
    jest.advanceTimersByTime(10)
    expect(exits).toEqual([0])
  },
)

test('a hung stop is killed after 7 s', () => {
  const { seen, signal } = startProcess()
  signal('SIGTERM')
  jest.advanceTimersByTime(6999)
  expect(exits).toEqual([])
  jest.advanceTimersByTime(1)
  expect([seen.failures, exits]).toEqual([[7000], ['SIGKILL', 'process.exit(137)']])
})

test('a role that starts during the stop sets how long it may take', () => {
  let msMax = 7000
  const { seen, signal } = startProcess(() => msMax)
  signal('SIGTERM')
  jest.advanceTimersByTime(6999)
  msMax = 30_000
  jest.advanceTimersByTime(23_000)
  expect(exits).toEqual([])
  jest.advanceTimersByTime(1)
  expect([seen.failures, exits]).toEqual([[30_000], ['SIGKILL', 'process.exit(137)']])
})

test('the duplicate of a Ctrl-C is not a second signal', () => {
  const { seen, signal } = startProcess()
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
] as const)('a second %s exits immediately', (name, code) => {
  const { seen, signal } = startProcess()
  nowMs = 1000
  signal('SIGTERM')
  nowMs = 1101
  signal(name)
  expect([seen.stops, exits]).toEqual([1, [name, `process.exit(${code})`]])
})

test('all components are stopped in order, even after a failure; its error is thrown', async () => {
  const order: string[] = []
  const component = (name: string, error?: Error) => () => {
    order.push(name)
    return error === undefined ? Promise.resolve() : Promise.reject(error)
  }
  const components = [
    component('a'),
    component('b', new Error('b')),
    component('c', new Error('c')),
    component('d'),
  ]
  await expect(stopInTurn(components)).rejects.toThrow('b')
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})
