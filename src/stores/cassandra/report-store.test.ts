// An insert of a report whose first attempt has an unknown outcome, or loses against other inserts;
// and the days that a page reads.
import { afterEach, expect, jest, test } from '@jest/globals'
import { dayOf, newReportId, type Report } from '../../links/report.ts'
import { StoreError } from '../../resilience/store-error.ts'
import type { CassandraSession } from './client.ts'
import { createCassandraReportStore } from './report-store.ts'

const report: Report = {
  id: newReportId(1_790_000_000_000),
  code: 'abc',
  reason: 'spam',
  details: null,
  contact: null,
}
const unknown = new StoreError('timeout', { outcome: 'unknown' })

afterEach(() => {
  jest.useRealTimers()
})

/** A session that returns `attempts` for the batches; the report exists after `isStoredAfter`. */
function sessionOf(
  attempts: readonly ('applied' | 'lost' | StoreError)[],
  isStoredAfter = Infinity,
) {
  const kinds: string[] = []
  let batches = 0
  const session: CassandraSession = {
    warmUp: () => undefined,
    execute(kind, cql) {
      kinds.push(kind)
      if (kind === 'lwt') {
        const outcome = attempts[Math.min(batches++, attempts.length - 1)]
        if (outcome instanceof StoreError) return Promise.reject(outcome)
        return Promise.resolve([{ '[applied]': outcome === 'applied' }])
      }
      if (cql.startsWith('SELECT DISTINCT')) return Promise.resolve([{ day: 1, stored: batches }])
      return Promise.resolve(batches >= isStoredAfter ? [{ id: report.id }] : [])
    },
  }
  return { store: createCassandraReportStore(session), batches: () => batches, kinds }
}

test('if an attempt of unknown outcome has stored the report, no retry stores it', async () => {
  const { store, batches, kinds } = sessionOf([unknown, 'applied'], 1)
  expect(await store.insert(report)).toBe('stored')
  expect([batches(), kinds]).toEqual([1, ['serial-read', 'lwt', 'serial-read']])
})

test('if an attempt of unknown outcome has not stored the report, a retry stores it', async () => {
  const { store, batches } = sessionOf([unknown, 'lost', 'applied'])
  expect(await store.insert(report)).toBe('stored')
  expect(batches()).toBe(3)
})

test('an insert that loses every attempt fails, and has stored nothing', async () => {
  const { store, batches } = sessionOf(['lost'])
  await expect(store.insert(report)).rejects.toMatchObject({ outcome: 'not-done' })
  expect(batches()).toBe(12)
})

/** A store that reads a day, with `rowsOf` it, in `readMs`; and the days that it has read. */
function slowStore(readMs: number, rowsOf: (day: number, max: number) => number) {
  const nowMs = 1_790_000_000_000
  const days: number[] = []
  const session: CassandraSession = {
    warmUp: () => undefined,
    async execute(...[, , values = []]) {
      const [day, max] = [Number(values[0]), Number(values.at(-1))]
      days.push(dayOf(nowMs) - day)
      await new Promise((resolve) => setTimeout(resolve, readMs))
      const { code, ...rest } = report
      return Array.from({ length: rowsOf(day, max) }, () => ({ ...rest, short_code: code }))
    },
  }
  const store = createCassandraReportStore(session, () => nowMs)
  return { days, list: () => store.list({ before: undefined, sinceMs: undefined, max: 100 }) }
}

test('a page that the newest day fills reads no other day', async () => {
  const { days, list } = slowStore(0, (_, max) => max)
  expect(await list()).toHaveLength(100)
  expect(days).toEqual([0])
})

test('a page reads each day until the oldest one, 8 at a time', async () => {
  const { days, list } = slowStore(0, () => 0)
  expect(await list()).toEqual([])
  expect(days.length).toBeLessThan(91 + 8)
  expect(days).toEqual(Array.from({ length: days.length }, (_, i) => i))
})

test('a page fails at its deadline, and reads no further day', async () => {
  jest.useFakeTimers()
  const { days, list } = slowStore(5000, () => 0)
  const failed = expect(list()).rejects.toMatchObject({
    outcome: 'not-done',
    message: 'Cassandra has not returned a page of reports within 12000 ms',
  })
  await jest.advanceTimersByTimeAsync(12_000)
  await failed
  await jest.advanceTimersByTimeAsync(60_000)
  expect(days).toEqual([0, 1, 2, 3, 4, 5, 6])
})
