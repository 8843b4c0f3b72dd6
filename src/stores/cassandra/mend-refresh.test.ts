// The mend of the driver's control connection, over a control that fails as the driver's does.
import { expect, test } from '@jest/globals'
import { mendRefresh, type RefreshingControl } from './mend-refresh.ts'

/** A control whose refreshes end when the test says so. */
function mended() {
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = []
  const steps: unknown[] = []
  const control: RefreshingControl = {
    _refresh: (hosts) => {
      steps.push(hosts)
      return new Promise<void>((resolve, reject) => {
        ends.push({ resolve, reject })
      })
    },
  }
  const closed = { now: false }
  const lateEnds: string[] = []
  mendRefresh(control, {
    log: { debug: () => undefined },
    isClosed: () => closed.now,
    onLate: () => lateEnds.push('late'),
  })
  return { control, ends, steps, closed, lateEnds }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a second refresh waits for the first, and then runs once', async () => {
  const { control, ends, steps } = mended()
  const first = control._refresh()
  await control._refresh()
  await control._refresh()
  expect(steps).toEqual([undefined])
  ends[0]?.resolve()
  await settled()
  expect(steps).toEqual([undefined, undefined])
  ends[1]?.resolve()
  await first
  expect(steps).toHaveLength(2)
})

test('a step of the refresh under way is taken at once', () => {
  const { control, steps } = mended()
  void control._refresh()
  void control._refresh('hosts')
  expect(steps).toEqual([undefined, 'hosts'])
})

test('one that fails rejects for nobody', async () => {
  const { control, ends } = mended()
  const refreshing = control._refresh()
  ends[0]?.reject(new TypeError('null'))
  await expect(refreshing).resolves.toBeUndefined()
})

test('a closed client is not refreshed again, and a refresh that ends then is told', async () => {
  const { control, ends, steps, closed, lateEnds } = mended()
  const before = control._refresh()
  ends[0]?.resolve()
  await before
  const refreshing = control._refresh()
  await control._refresh()
  closed.now = true
  expect(lateEnds).toEqual([])
  ends[1]?.resolve()
  await refreshing
  expect(steps).toHaveLength(2)
  expect(lateEnds).toEqual(['late'])
})

test('one that fails when the client is closed is told too', async () => {
  const { control, ends, closed, lateEnds } = mended()
  const refreshing = control._refresh()
  closed.now = true
  ends[0]?.reject(new Error('closed'))
  await refreshing
  expect(lateEnds).toEqual(['late'])
})
