// An insert of a report whose first attempt has an unknown outcome, or loses against other inserts;
// and the days and rows that a page reads.
import { afterEach, expect, jest, test } from '@jest/globals'
import { dayOf, idBoundAt, idBoundOfDay, newReportId, type Report } from '../../links/report.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { REPORTS_PER_DAY_MAX } from '../../links/report-store.ts'
import type { CassandraSession } from './client.ts'
import { createCassandraReportStore } from './report-store.ts'
import type { Row } from './row.ts'
import type { StatementKind } from './statement-kinds.ts'

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

const DAY_MS = 86_400_000
const rowOf = (id: string, change: Row = {}): Row => {
  const { code, ...rest } = report
  return { ...rest, id, short_code: code, ...change }
}

/** A store at the time of `report` whose reads return these rows in turn; and their values. */
function readableStore(...results: readonly (readonly Row[])[]) {
  const reads: { readonly kind: StatementKind; readonly values: readonly unknown[] }[] = []
  const session: CassandraSession = {
    warmUp: () => undefined,
    execute(kind, _cql, values = []) {
      const rows = results[reads.length] ?? []
      reads.push({ kind, values })
      return Promise.resolve(rows)
    },
  }
  return { store: createCassandraReportStore(session, () => 1_790_000_000_000), reads }
}

test('a page reads from the oldest allowed id to a bound, which only one day has', async () => {
  const { store, reads } = readableStore()
  const today = dayOf(1_790_000_000_000)
  const before = newReportId((today - 1) * DAY_MS + 5)
  const sinceMs = (today - 3) * DAY_MS + 7
  expect(await store.list({ before, sinceMs, max: 10 })).toEqual([])
  const from = idBoundAt(sinceMs)
  expect(reads.map(({ values }) => values)).toEqual([
    [today - 1, from, before, 10],
    [today - 2, from, idBoundOfDay(today - 1), 10],
    [today - 3, from, idBoundOfDay(today - 2), 10],
  ])
})

test('a page without bounds starts today, and a bound in the future has no effect', async () => {
  const today = dayOf(1_790_000_000_000)
  const oldest = idBoundAt(1_790_000_000_000 - 90 * DAY_MS)
  for (const before of [undefined, newReportId((today + 2) * DAY_MS)]) {
    const { store, reads } = readableStore([rowOf('a')])
    await store.list({ before, sinceMs: undefined, max: 1 })
    expect(reads).toEqual([
      { kind: 'page-read', values: [today, oldest, idBoundOfDay(today + 1), 1] },
    ])
  }
})

test('the next days are read for the missing reports only, up to a page', async () => {
  const rows = ['a', 'b', 'c'].map((id) => rowOf(id))
  const { store, reads } = readableStore(rows, rows, rows)
  const page = await store.list({ before: undefined, sinceMs: undefined, max: 5 })
  expect(page.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'a', 'b'])
  expect(reads.map(({ values }) => values.at(-1))).toEqual([5, 2, 2])
})

test('a row that is partly expired contains no report', async () => {
  const expired = [rowOf('a', { reason: null }), rowOf('b', { short_code: null })]
  const { store } = readableStore([...expired, rowOf('c')], [expired[0] ?? {}])
  expect(await store.list({ before: undefined, sinceMs: 1_790_000_000_000, max: 2 })).toEqual([
    { ...report, id: 'c' },
  ])
  expect(await store.find(report.id)).toBeUndefined()
})

test('a report is found by its id and day', async () => {
  const given = { details: 'odd', contact: 'me@a.example' }
  const { store, reads } = readableStore([rowOf(report.id, given)], [rowOf(report.id)], [])
  expect(await store.find(report.id)).toEqual({ ...report, ...given })
  expect(await store.find(report.id)).toEqual(report)
  expect(await store.find(report.id)).toBeUndefined()
  const values = [dayOf(1_790_000_000_000), report.id]
  expect(reads[0]).toEqual({ kind: 'majority-read', values })
})

test('a report on a full day is rejected unless it is stored', async () => {
  const full = [{ stored: REPORTS_PER_DAY_MAX }]
  const { store, reads } = readableStore(full, [], full, [rowOf(report.id)])
  expect([await store.insert(report), await store.insert(report)]).toEqual(['full', 'stored'])
  expect(reads.map(({ kind }) => kind)).toEqual(Array.from({ length: 4 }, () => 'serial-read'))
})

test.each([
  [[], null, 1],
  [[{ stored: null }], null, 1],
  [[{ stored: REPORTS_PER_DAY_MAX - 1 }], REPORTS_PER_DAY_MAX - 1, REPORTS_PER_DAY_MAX],
])('the first insert after %j increments the number of the day', async (rows, from, to) => {
  const { store, reads } = readableStore(rows, [{ '[applied]': true }])
  const contact = 'me@a.example'
  expect(await store.insert({ ...report, contact })).toBe('stored')
  const { id, code, reason } = report
  const day = dayOf(1_790_000_000_000)
  const values = [to, day, from, day, id, code, reason, undefined, contact]
  expect(reads[1]).toEqual({ kind: 'lwt', values })
})

test('a contact that is absent is not written as null', async () => {
  const { store, reads } = readableStore([], [{ '[applied]': true }])
  await store.insert({ ...report, details: 'odd' })
  expect(reads[1]?.values.slice(-2)).toEqual(['odd', undefined])
})
