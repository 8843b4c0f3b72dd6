// The form that reports abuse, over HTTP: what it stores, what it shows, and what it rejects.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import {
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import { createMemoryReportStore } from '../../../test/kit/stores/memory-report-store.ts'
import type { ReportStore } from '../../links/report-store.ts'
import type { Clock } from '../../resilience/deadline.ts'
import { StoreError } from '../../resilience/store-error.ts'
import { noLimits, type RequestLimits } from '../limit-requests.ts'
import { de } from '../pages/strings/de.ts'

const valid = { link: 'https://curtail.example/abc', reason: 'malware', details: '', contact: '' }
const hostile = '"><script>alert(1)</script>\'&lt;'
const escaped = '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&amp;lt;'
const form = 'application/x-www-form-urlencoded'

let app: RunningCreateApp
let reports: ReportStore
let onReport: RequestLimits['onReport']
let nowMs: Clock

beforeAll(async () => {
  app = await startCreateApp(createdAsRequested, {
    reports: { ...createMemoryReportStore(), insert: (report) => reports.insert(report) },
    limits: { ...noLimits, onReport: (req) => onReport(req) },
    nowMs: () => nowMs(),
  })
})
afterAll(() => app.stop())
beforeEach(() => {
  reports = createMemoryReportStore()
  onReport = (req) => noLimits.onReport(req)
  nowMs = Date.now
})

async function request(path: string, init: RequestInit = {}) {
  const response = await fetch(`${app.url}${path}`, init)
  return { status: response.status, headers: response.headers, body: await response.text() }
}

const submit = (change: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  request('/abuse', {
    method: 'POST',
    headers: { 'Content-Type': form, ...headers },
    body: new URLSearchParams({ ...valid, ...change }).toString(),
  })

const stored = () => reports.list({ before: undefined, sinceMs: undefined, max: 100 })

async function countOf(reason: string): Promise<number> {
  const { values } = await app.metrics.reports.get()
  return values.find(({ labels }) => labels.reason === reason)?.value ?? 0
}

/** The content of the element with this id. */
const contentOf = (page: string, id: string) =>
  new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1]?.trim()
const valueOf = (page: string, id: string) =>
  new RegExp(`id="${id}"[^>]*\\svalue="([^"]*)"`).exec(page)?.[1]

test('the page has a form without a script; ?link= fills in the link, escaped', async () => {
  const { status, headers, body } = await request(`/abuse?link=${encodeURIComponent(hostile)}`)
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(body).not.toContain('<script')
  expect(valueOf(body, 'link')).toBe(escaped)
  for (const name of ['link', 'reason', 'details', 'contact']) {
    expect(body).toContain(`<label for="${name}">`)
    expect(body).toMatch(new RegExp(`<(input|select|textarea)\\s+id="${name}" name="${name}"`))
  }
  expect(valueOf((await request('/abuse')).body, 'link')).toBe('')
})

test('a report is stored, counted and confirmed with its number', async () => {
  const before = await countOf('malware')
  const details = `\n${hostile}\nπ`
  const { status, headers, body } = await submit({ details, contact: 'a@b.example' })
  expect([status, headers.get('cache-control')]).toEqual([201, 'no-store'])
  const [report, ...others] = await stored()
  expect(others).toEqual([])
  expect(report).toEqual({
    id: contentOf(body, 'report'),
    code: 'abc',
    reason: 'malware',
    details: details.trim(),
    contact: 'a@b.example',
  })
  expect(await countOf('malware')).toBe(before + 1)
})

test('a rejected form shows each fault at its field, and keeps the values', async () => {
  const fields = { link: hostile, reason: 'spam', details: `\n${hostile}\u0000`, contact: hostile }
  const { status, headers, body } = await submit(fields)
  expect([status, headers.get('cache-control')]).toEqual([422, 'no-store'])
  expect(contentOf(body, 'link-fault')).toMatch(
    /^The link must be a short link of curtail\.example/,
  )
  expect(contentOf(body, 'details-fault')).toMatch(/control characters/)
  expect(contentOf(body, 'contact-fault')).toMatch(/e-mail address/)
  expect(contentOf(body, 'reason-fault')).toBe('')
  expect(body.match(/ autofocus/g)).toHaveLength(1)
  expect(body).not.toContain('<script')
  expect([valueOf(body, 'link'), valueOf(body, 'contact')]).toEqual([escaped, escaped])
  expect(contentOf(body, 'details')).toContain(escaped)
  expect(body).toMatch(/<option value="spam"\s+selected>/)
  expect(await stored()).toEqual([])
})

test('a form that another site sends must be confirmed', async () => {
  const { status, body } = await submit({}, { 'Sec-Fetch-Site': 'cross-site' })
  expect(status).toBe(403)
  expect(contentOf(body, 'message')).toMatch(/^Another site sent this form/)
  expect(valueOf(body, 'link')).toBe(valid.link)
  expect(await stored()).toEqual([])
  for (const site of ['same-origin', 'same-site', 'none']) {
    expect((await submit({}, { 'Sec-Fetch-Site': site })).status).toBe(201)
  }
})

test.each([
  ['not-done', /^The database is unavailable, and the report was not stored/],
  ['unknown', /^The database did not respond, and it is unknown whether/],
] as const)('a report gets 503 if the store fails with outcome %s', async (outcome, message) => {
  const failure = new StoreError('hidden cause', { outcome })
  reports = { ...createMemoryReportStore(), insert: () => Promise.reject(failure) }
  const before = await countOf(valid.reason)
  const { status, headers, body } = await submit({ details: 'kept' })
  expect([status, headers.get('retry-after')]).toEqual([503, '1'])
  expect(contentOf(body, 'message')).toMatch(message)
  expect(contentOf(body, 'details')).toBe('kept')
  expect(body).not.toContain('hidden cause')
  expect(await countOf(valid.reason)).toBe(before)
})

test('on a full day, reports get 503 without calling the store, until the next day', async () => {
  let atMs = Date.UTC(2027, 0, 1, 23, 59, 50)
  nowMs = () => atMs
  const store = createMemoryReportStore(nowMs, 1)
  let inserts = 0
  reports = {
    ...store,
    insert(report) {
      inserts++
      return store.insert(report)
    },
  }
  expect((await submit()).status).toBe(201)
  for (let i = 0; i < 2; i++) {
    const { status, headers, body } = await submit({ details: 'kept' })
    expect([status, headers.get('retry-after'), inserts]).toEqual([503, '10', 2])
    expect(contentOf(body, 'message')).toMatch(/^This service stores at most 5000 reports per day/)
    expect(contentOf(body, 'details')).toBe('kept')
  }
  atMs += 10_000
  expect((await submit()).status).toBe(201)
  expect(await stored()).toHaveLength(2)
})

test('a process inserts at most 4 reports at the same time', async () => {
  const store = createMemoryReportStore()
  const released = Promise.withResolvers<undefined>()
  const reached = Promise.withResolvers<undefined>()
  let inserts = 0
  reports = {
    ...store,
    async insert(report) {
      if (++inserts === 4) reached.resolve(undefined)
      await released.promise
      if (inserts > 4) return store.insert(report)
      throw new StoreError('hidden cause', { outcome: 'not-done' })
    },
  }
  const pending = [1, 2, 3, 4].map(() => submit())
  await reached.promise
  const { status, headers, body } = await submit({ details: 'kept' })
  expect([status, headers.get('retry-after'), inserts]).toEqual([503, '1', 4])
  expect(contentOf(body, 'message')).toMatch(/^Too many reports arrive at this time/)
  expect(contentOf(body, 'details')).toBe('kept')
  released.resolve(undefined)
  for (const response of await Promise.all(pending)) expect(response.status).toBe(503)
  expect((await submit()).status).toBe(201)
})

test('a client over its limit gets 429 with the headers, and keeps the values', async () => {
  const headers = { limit: '10', remaining: '0', reset: '1' }
  const problem = {
    name: 'rate-limited',
    detail: 'The limit reports-per-client is used up: retry in 300 s',
    headers: { 'Retry-After': '300' },
  } as const
  onReport = () => ({ headers, problem })
  const response = await submit({ details: 'kept' })
  expect(response.status).toBe(429)
  expect(contentOf(response.body, 'details')).toBe('kept')
  expect(response.headers.get('retry-after')).toBe('300')
  expect(response.headers.get('x-ratelimit-limit')).toBe('10')
  expect(contentOf(response.body, 'message')).toBe(
    'Too many requests. Please wait 300 s, then retry.',
  )
  expect(await stored()).toEqual([])
})

test('other bodies and methods are rejected like those of other routes', async () => {
  const post = (type: string, body: string) =>
    request('/abuse', { method: 'POST', headers: { 'Content-Type': type }, body })
  expect((await post('application/json', '{}')).status).toBe(415)
  expect((await post(form, `details=${'x'.repeat(16_384)}`)).status).toBe(413)
  const deleted = await request('/abuse', { method: 'DELETE' })
  expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  expect((await request('/abuse/')).status).toBe(404)
  expect(await stored()).toEqual([])
})

test('the form, its faults and its result are in German if the client prefers it', async () => {
  const german = { 'Accept-Language': 'fr, de-AT;q=0.9, en;q=0.5' }
  const page = await request('/abuse?link=abc', { headers: german })
  expect(page.headers.get('vary')).toBe('Accept-Language')
  expect(page.body).toContain('<html lang="de">')
  expect(page.body).toContain(`<a href="/abuse">${de.abuse.heading}</a>`)
  expect(valueOf(page.body, 'link')).toBe('abc')
  const faulty = await submit({ reason: '' }, german)
  expect(faulty.body).toContain(`<title>${de.abuse.faultyTitle}</title>`)
  expect(contentOf(faulty.body, 'reason-fault')).toBe(de.abuse.faults.reason)
  const cross = await submit({}, { ...german, 'Sec-Fetch-Site': 'cross-site' })
  expect(contentOf(cross.body, 'message')).toBe(de.abuse.messages.anotherSite)
  const failure = new StoreError('hidden cause', { outcome: 'unknown' })
  reports = { ...createMemoryReportStore(), insert: () => Promise.reject(failure) }
  const failed = await submit({}, german)
  expect(contentOf(failed.body, 'message')).toBe(de.abuse.messages.unknown)
  reports = createMemoryReportStore()
  const { status, headers, body } = await submit({}, german)
  expect([status, headers.get('vary')]).toEqual([201, 'Accept-Language'])
  expect(body).toContain(`<h1>${de.abuse.reported}</h1>`)
  expect((await stored()).map(({ id }) => id)).toEqual([contentOf(body, 'report')])
})
