// The workaround for concurrent refreshes, on a fake that fails as the driver does.
import { expect, test } from '@jest/globals'
import { serializeRefreshes, type RefreshableControl } from './workaround-concurrent-refresh.ts'

/** A control connection whose refreshes the test completes. */
function patchedControl() {
  const refreshes: { resolve: () => void; reject: (error: Error) => void }[] = []
  const steps: unknown[] = []
  const control: RefreshableControl = {
    _refresh: (hosts) => {
      steps.push(hosts)
      return new Promise<void>((resolve, reject) => {
        refreshes.push({ resolve, reject })
      })
    },
  }
  const closed = { now: false }
  const closedRefreshes: string[] = []
  serializeRefreshes(control, {
    log: { debug: () => undefined },
    isClosed: () => closed.now,
    onRefreshAfterClose: () => closedRefreshes.push('refreshed'),
  })
  return { control, refreshes, steps, closed, closedRefreshes }
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
