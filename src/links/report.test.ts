// The ids of reports: they contain their time, sort by it, and have bounds for every time.
import { expect, test } from '@jest/globals'
import { dayOf, idBoundAt, idBoundOfDay, isReportId, newReportId, receivedAtMs } from './report.ts'

const NOW_MS = Date.UTC(2026, 10, 27, 23, 59, 59, 999)
const times = [0, 1, 31, 32, 1_790_000_000_123, NOW_MS, NOW_MS + 1, 32 ** 9 - 1]

test('an id contains its time', () => {
  for (const ms of times) {
    const id = newReportId(ms)
    expect([isReportId(id), receivedAtMs(id)]).toEqual([true, ms])
  }
})

test('ids sort by their times, and idBoundAt() sorts between earlier and later ids', () => {
  const sorted = times.flatMap((ms) => [idBoundAt(ms), newReportId(ms)])
  expect(sorted.toSorted()).toEqual(sorted)
  expect(idBoundAt(-1)).toBe(idBoundAt(0))
})

test('the days of two times around midnight differ', () => {
  expect(dayOf(NOW_MS + 1)).toBe(dayOf(NOW_MS) + 1)
  expect(idBoundOfDay(dayOf(NOW_MS + 1))).toBe(idBoundAt(NOW_MS + 1))
})

test('10,000 ids of one millisecond are different', () => {
  const ids = Array.from({ length: 10_000 }, () => newReportId(NOW_MS))
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(['', '1hmny8mg09q0cnn', '1hmny8mg09q0cnnbb', '1hmny8mg09q0cnni', '1HMNY8MG09Q0CNNB'])(
  '%j is not an id',
  (id) => {
    expect(isReportId(id)).toBe(false)
  },
)
