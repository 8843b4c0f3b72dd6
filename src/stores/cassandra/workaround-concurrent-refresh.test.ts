// The workaround for concurrent refreshes, on a fake that fails as the driver does.
import { afterEach, expect, jest, test } from '@jest/globals'
import {
  type RefreshableControl,
  type SerializeRefreshOptions,
  serializeRefreshes,
} from './workaround-concurrent-refresh.ts'

afterEach(() => {
  jest.useRealTimers()
})

/** A control connection whose refreshes the test completes. */
function patchedControl() {
  const refreshes: { resolve: () => void; reject: (error: Error) => void }[] = []
  const steps: unknown[] = []
  const control: RefreshableControl = {
    _refresh(hosts) {
      expect(this).toBe(control)
      steps.push(hosts)
      return new Promise<void>((resolve, reject) => {
        refreshes.push({ resolve, reject })
      })
    },
  }
  const closed = { now: false }
  const closedRefreshes: string[] = []
  const debugLog: unknown[] = []
  serializeRefreshes(control, {
    log: { debug: (...line: unknown[]) => debugLog.push(line) } as SerializeRefreshOptions['log'],
    isClosed: () => closed.now,
    onRefreshAfterClose: () => closedRefreshes.push('refreshed'),
  })
  return { control, refreshes, steps, closed, closedRefreshes, debugLog }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a second refresh waits for the first, and then runs once', async () => {
  const { control, refreshes, steps } = patchedControl()
  const first = control._refresh()
  await control._refresh()
  await control._refresh()
  expect(steps).toEqual([undefined])
  refreshes[0]?.resolve()
  await settled()
  expect(steps).toEqual([undefined, undefined])
  refreshes[1]?.resolve()
  await first
  expect(steps).toHaveLength(2)
})

test('the next step of the current refresh runs immediately', () => {
  const { control, steps } = patchedControl()
  void control._refresh()
  void control._refresh('hosts')
  expect(steps).toEqual([undefined, 'hosts'])
})

test('a failed refresh does not reject', async () => {
  const { control, refreshes } = patchedControl()
  const refreshing = control._refresh()
  refreshes[0]?.reject(new TypeError('null'))
  await expect(refreshing).resolves.toBeUndefined()
})

test('a failed refresh is logged at debug, and retried after half a second', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'performance'] })
  const { control, refreshes, steps, debugLog, closedRefreshes } = patchedControl()
  const refreshing = control._refresh()
  const err = new TypeError('null')
  refreshes[0]?.reject(err)
  await refreshing
  expect(debugLog).toEqual([[{ err }, 'Cassandra control connection not reconnected']])
  jest.advanceTimersByTime(499)
  expect(steps).toHaveLength(1)
  jest.advanceTimersByTime(1)
  expect(steps).toEqual([undefined, undefined])
  refreshes[1]?.resolve()
  await settled()
  expect([jest.getTimerCount(), closedRefreshes]).toEqual([0, []])
})

test('a retry waits for a refresh that has started meanwhile', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'performance'] })
  const { control, refreshes, steps } = patchedControl()
  const failed = control._refresh()
  refreshes[0]?.reject(new Error('lost'))
  await failed
  void control._refresh()
  jest.advanceTimersByTime(500)
  expect(steps).toHaveLength(2)
  refreshes[1]?.resolve()
  await settled()
  expect(steps).toHaveLength(3)
})

test('a closed client does not retry a failed refresh', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'performance'] })
  const { control, refreshes, closed } = patchedControl()
  const refreshing = control._refresh()
  closed.now = true
  refreshes[0]?.reject(new Error('closed'))
  await refreshing
  expect(jest.getTimerCount()).toBe(0)
})

test('a closed client starts no refresh and reports one that completes', async () => {
  const { control, refreshes, steps, closed, closedRefreshes } = patchedControl()
  const before = control._refresh()
  refreshes[0]?.resolve()
  await before
  const refreshing = control._refresh()
  await control._refresh()
  closed.now = true
  expect(closedRefreshes).toEqual([])
  refreshes[1]?.resolve()
  await refreshing
  expect(steps).toHaveLength(2)
  expect(closedRefreshes).toEqual(['refreshed'])
})

test('a closed client reports a refresh that fails', async () => {
  const { control, refreshes, closed, closedRefreshes } = patchedControl()
  const refreshing = control._refresh()
  closed.now = true
  refreshes[0]?.reject(new Error('closed'))
  await refreshing
  expect(closedRefreshes).toEqual(['refreshed'])
})
