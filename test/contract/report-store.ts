// The contract of a store of reports: the guarantees of src/links/report-store.ts as tests.
// Independent of the stores, which report-store.test.ts lists.
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { SweptStore } from '../../src/links/link-store.ts'
import { idBoundAt, newReportId, type Report, REPORT_TTL_MS } from '../../src/links/report.ts'
import type { ReportStore } from '../../src/links/report-store.ts'
import { resultOrOutcome } from '../../src/resilience/retry-until-deadline.ts'
import { openCase } from './open-case.ts'

/** An open store. */
interface OpenedReportStore {
  /** Stores at most PER_DAY_MAX reports of one day. */
  readonly reports: ReportStore
  /** Sets the clock that determines the oldest report. */
  readonly setNowMs: (nowMs: number) => void
  /** The same store if reports do not expire by themselves. */
  readonly swept?: SweptStore
  /** Reads the remaining lifetime of a stored report, if the store has a native expiry. */
  readonly secondsLeft?: (report: Report) => Promise<number>
  readonly close: () => Promise<void>
}

/** A store that the contract is run on. */
export interface ReportStoreCase {
  readonly name: string
  readonly open: () => Promise<OpenedReportStore>
}

type Opened = () => OpenedReportStore

/** The bound of the stores under test. */
export const PER_DAY_MAX = 6
/** When the clock of a store starts: noon, UTC. */
export const START_MS = Date.UTC(2026, 10, 27, 12)

const DAY_MS = 86_400_000
const PAGE_MAX = 100

/** Each test stores its reports in days that no other test uses. */
let usedDays = 0
function freshDayMs(days = 1): number {
  usedDays += days
  return START_MS - usedDays * DAY_MS
}

/** Defines the tests of one store. */
export function defineReportStoreTests({ name, open }: ReportStoreCase): void {
  describe(name, () => {
    const opened = openCase({ name, open })
    beforeAll(() => {
      usedDays = 0
    })
    defineInsertTests(opened)
    defineListTests(opened)
    defineAgeTests(opened)
  })
}

function sampleReport(atMs: number, change: Partial<Report> = {}): Report {
  const details = 'A bank\'s "login" page\n\tπ 😀 \u0085\u202e'
  const report = { code: 'abc-_9Z', reason: 'phishing', details, contact: 'a@b.example' } as const
  return { id: newReportId(atMs), ...report, ...change }
}

/** Stores `count` reports, a millisecond apart, the newest one first in the result. */
async function insertSamples({ reports }: OpenedReportStore, atMs: number, count: number) {
  const stored = Array.from({ length: count }, (_, i) => sampleReport(atMs + i))
  for (const report of stored) expect(await reports.insert(report)).toBe('stored')
  return stored.toReversed()
}

/** Inserts as a client does: contention may exhaust the attempts of an insert. */
async function insertWithRetries({ reports }: OpenedReportStore, report: Report) {
  let result = await resultOrOutcome(reports.insert(report))
  for (let i = 0; i < 5 && (result === 'not-done' || result === 'unknown'); i++) {
    result = await resultOrOutcome(reports.insert(report))
  }
  return result
}

function defineInsertTests(opened: Opened): void {
  test('insert() stores every field, with and without details and contact', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs()
    const absent = { details: null, contact: null }
    const longest = { details: '\u4e2d'.repeat(2000), contact: `${'a'.repeat(246)}@b.exampl` }
    for (const change of [{}, absent, longest]) {
      const report = sampleReport(dayMs, change)
      expect(await reports.insert(report)).toBe('stored')
      expect(await reports.find(report.id)).toEqual(report)
    }
  })

  test('an unknown id reads as undefined', async () => {
    expect(await opened().reports.find(newReportId(freshDayMs()))).toBeUndefined()
  })

  test('a report that is inserted twice is stored once and counted once', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs()
    const report = sampleReport(dayMs)
    for (let i = 0; i < 2; i++) expect(await reports.insert(report)).toBe('stored')
    await insertSamples(opened(), dayMs + 1, PER_DAY_MAX - 1)
    expect(await reports.insert(sampleReport(dayMs + 1000))).toBe('full')
    expect(await reports.insert(report)).toBe('stored')
    const page = { before: undefined, sinceMs: undefined, max: PAGE_MAX }
    const listed = await reports.list(page)
    expect(listed.filter(({ id }) => id === report.id)).toEqual([report])
  })

  test('a full day stores no further report; the next day does', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs(2)
    await insertSamples(opened(), dayMs, PER_DAY_MAX)
    const rejected = sampleReport(dayMs + 1000)
    expect(await reports.insert(rejected)).toBe('full')
    expect(await reports.find(rejected.id)).toBeUndefined()
    expect(await reports.insert(sampleReport(dayMs + DAY_MS))).toBe('stored')
  })

  test('of 16 inserts, 4 at a time, a day stores as many as its bound allows', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs()
    const offered = Array.from({ length: 16 }, () => sampleReport(dayMs))
    const results: string[] = []
    for (let i = 0; i < offered.length; i += 4) {
      const some = offered.slice(i, i + 4)
      const inserts = some.map((report) => insertWithRetries(opened(), report))
      results.push(...(await Promise.all(inserts)))
    }
    const found = await Promise.all(offered.map(({ id }) => reports.find(id)))
    expect(results.filter((result) => result === 'stored')).toHaveLength(PER_DAY_MAX)
    expect(found.filter((report) => report !== undefined)).toHaveLength(PER_DAY_MAX)
    results.forEach((result, i) => {
      expect([result, found[i] === undefined]).toEqual([result, result === 'full'])
    })
  })
}

function defineListTests(opened: Opened): void {
  test('list() returns all reports, newest first, in pages of any size', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs(30)
    const days = [0, 1, 7, 8, 9, 20]
    const stored: Report[] = []
    for (const day of days) {
      stored.unshift(...(await insertSamples(opened(), dayMs + day * DAY_MS, 3)))
    }
    for (const max of [1, 2, 7, PAGE_MAX]) {
      const listed: Report[] = []
      const first = idBoundAt(dayMs + 21 * DAY_MS)
      for (let before: string | undefined = first; ; before = listed.at(-1)?.id) {
        const page = await reports.list({ before, sinceMs: dayMs, max })
        listed.push(...page)
        if (page.length < max) break
      }
      expect(listed).toEqual(stored)
    }
  })

  test('list() before an id of the future returns the same reports as without one', async () => {
    const { reports } = opened()
    const sinceMs = freshDayMs()
    const stored = await insertSamples(opened(), sinceMs, 3)
    for (const before of [idBoundAt(Date.UTC(3000, 0)), undefined]) {
      const listed = await reports.list({ before, sinceMs, max: PAGE_MAX })
      expect(listed.slice(-3)).toEqual(stored)
    }
  })

  test('list() returns only reports since a time, and before an id', async () => {
    const { reports } = opened()
    const dayMs = freshDayMs()
    const [newest, middle, oldest] = await insertSamples(opened(), dayMs, 3)
    const before = idBoundAt(dayMs + 1000)
    const listSince = (sinceMs: number) => reports.list({ before, sinceMs, max: PAGE_MAX })
    expect(await listSince(dayMs)).toEqual([newest, middle, oldest])
    expect(await listSince(dayMs + 1)).toEqual([newest, middle])
    expect(await listSince(dayMs + 3)).toEqual([])
    const rest = { before: newest?.id, sinceMs: dayMs, max: 1 }
    expect(await reports.list(rest)).toEqual([middle])
  })
}

function defineAgeTests(opened: Opened): void {
  test('a report expires REPORT_TTL_MS after it was received', async () => {
    const { reports, setNowMs, secondsLeft } = opened()
    const dayMs = freshDayMs()
    const [report] = await insertSamples(opened(), dayMs, 1)
    if (report === undefined) throw new Error('no report was stored')
    if (secondsLeft !== undefined) {
      const ttlSeconds = REPORT_TTL_MS / 1000
      const left = await secondsLeft(report)
      expect(left).toBeLessThanOrEqual(ttlSeconds)
      expect(left).toBeGreaterThan(ttlSeconds - 600)
      return
    }
    const before = idBoundAt(dayMs + 1)
    const list = () => reports.list({ before, sinceMs: dayMs, max: 1 })
    setNowMs(dayMs + REPORT_TTL_MS)
    expect([await reports.find(report.id), await list()]).toEqual([report, [report]])
    setNowMs(dayMs + REPORT_TTL_MS + 1)
    expect([await reports.find(report.id), await list()]).toEqual([undefined, []])
    setNowMs(START_MS)
  })

  test('deleteExpired() deletes only expired reports, at most max at a time', async () => {
    const { reports, swept, setNowMs } = opened()
    if (swept === undefined) return
    const dayMs = freshDayMs(1000) // older than the reports of all other tests
    setNowMs(dayMs)
    const [fresh, ...expired] = await insertSamples(opened(), dayMs, 4)
    const sweep = { beforeMs: dayMs + 3 + REPORT_TTL_MS, max: 2 }
    expect(await swept.deleteExpired(sweep)).toBe(2)
    expect(await swept.deleteExpired(sweep)).toBe(1)
    expect(await swept.deleteExpired(sweep)).toBe(0)
    for (const { id } of expired) expect(await reports.find(id)).toBeUndefined()
    expect(await reports.find(fresh?.id ?? '')).toEqual(fresh)
    setNowMs(START_MS)
  })
}
