// The form of the home page while it is filled in, in a real browser against the real process: the
// check of the alias, the expiry in the time zone of the reader, sharing, and German.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from '@jest/globals'
import type { Page, Request } from 'playwright-core'
import { de } from '../../../src/http/pages/strings/de.ts'
import { en } from '../../../src/http/pages/strings/en.ts'
import { fill } from '../../../src/http/pages/strings/negotiate.ts'
import { captureNextBody, INSECURE_HOST } from '../../kit/http/browser.ts'
import { focused, shortUrlOn, submit } from '../../kit/http/home-page.ts'
import { setUpPageTests } from '../../kit/http/set-up-page-tests.ts'

const TEST_MS_MAX = 180_000
const DAY_MS = 86_400_000

const { visit } = setUpPageTests()

/** Collects the checks that the page sends from now on. */
function checksOf(page: Page): Request[] {
  const checks: Request[] = []
  page.on('request', (request) => {
    if (request.method() === 'HEAD' && request.redirectedFrom() === null) checks.push(request)
  })
  return checks
}

/** Runs in the page: the time between the starts of its checks of `slow` and `next`, in ms. */
const checkDistance = `(() => {
  const [slow, next] = ['slow', 'next'].map((alias) =>
    performance.getEntriesByName(location.origin + '/' + alias)[0].startTime)
  return next - slow
})()`

const waitForFault = (page: Page, fault: string) =>
  page.waitForSelector(`#custom_alias-fault:text-is("${fault}")`)

test(
  'the page names malformed and reserved aliases without a request, and confirms a free one',
  async () => {
    const page = await visit()
    const checks = checksOf(page)
    await page.fill('#custom_alias', 'no space')
    await waitForFault(page, en.faults.malformed)
    expect(await page.getAttribute('#custom_alias', 'aria-invalid')).toBe('true')
    await page.fill('#custom_alias', ' API ')
    await waitForFault(page, fill(en.faults.reserved, { alias: 'API' }))
    expect(await page.textContent('#status')).toBe(fill(en.faults.reserved, { alias: 'API' }))
    expect(checks).toEqual([])
    await page.fill('#custom_alias', 'free-one')
    const free = fill(en.script.free, { alias: 'free-one' })
    await page.waitForSelector(`#free:text-is("${free}")`)
    expect(await page.textContent('#status')).toBe(free)
    expect(await page.getAttribute('#custom_alias', 'aria-invalid')).toBeNull()
    expect(checks.map((one) => new URL(one.url()).pathname)).toEqual(['/free-one'])
    await submit(page, { long_url: 'https://example.com/' })
    expect(await shortUrlOn(page)).toMatch(/\/free-one$/)
    expect(await page.isHidden('#free')).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'the page names a taken alias and suggests another, without a request to the target',
  async () => {
    let requests = 0
    const target = createServer((_req, res) => {
      requests++
      res.end()
    })
    target.listen(0, '127.0.0.1')
    await once(target, 'listening')
    try {
      const page = await visit()
      const port = String((target.address() as AddressInfo).port)
      await submit(page, { long_url: `http://${INSECURE_HOST}:${port}/`, custom_alias: 'taken' })
      const shortUrl = await shortUrlOn(page)
      await page.fill('#custom_alias', 'taken')
      await waitForFault(page, fill(en.faults['alias-taken'], { alias: 'taken' }))
      expect(await page.textContent('#suggested')).toMatch(/^taken-[0-9a-f]{2}$/)
      expect(requests).toBe(0)
      await page.goto(shortUrl)
      expect(requests).toBeGreaterThan(0)
    } finally {
      target.close()
      target.closeAllConnections()
    }
  },
  TEST_MS_MAX,
)

test(
  'an input aborts the check of the previous one, and checks have a minimum distance',
  async () => {
    const page = await visit()
    const checks = checksOf(page)
    const released = Promise.withResolvers<undefined>()
    await page.route('**/slow', async (route) => {
      await released.promise
      await route.fulfill({ status: 302, headers: { Location: '/' } }).catch(() => undefined)
    })
    const started = page.waitForRequest('**/slow')
    await page.fill('#custom_alias', 'slow')
    const slow = await started
    const failed = page.waitForEvent('requestfailed', { predicate: (one) => one === slow })
    const next = page.waitForRequest('**/next')
    await page.fill('#custom_alias', 'next')
    await failed
    await next
    released.resolve(undefined)
    await page.waitForSelector('#free:not(:empty)')
    expect(await page.evaluate(checkDistance)).toBeGreaterThan(1900)
    expect(await page.textContent('#custom_alias-fault')).toBe('')
    expect(checks).toHaveLength(2)
  },
  TEST_MS_MAX,
)

test(
  'a create that reports a taken alias aborts the check of the same alias',
  async () => {
    const page = await visit()
    const created = Promise.withResolvers<undefined>()
    await page.route('**/v1/urls', async (route) => {
      await created.promise
      await route.fulfill({ status: 409, json: { type: '/problems/alias-taken' } })
    })
    const checked = Promise.withResolvers<undefined>()
    await page.route('**/same', async (route) => {
      await checked.promise
      await route.fulfill({ status: 404 }).catch(() => undefined)
    })
    await submit(page, { long_url: 'https://example.com/', custom_alias: 'same' })
    const started = page.waitForRequest('**/same')
    await page.fill('#custom_alias', 'edited')
    await page.fill('#custom_alias', 'same')
    const check = await started
    const failed = page.waitForEvent('requestfailed', { predicate: (one) => one === check })
    created.resolve(undefined)
    await waitForFault(page, fill(en.faults['alias-taken'], { alias: 'same' }))
    checked.resolve(undefined)
    await failed
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 100))')
    expect(await page.textContent('#free')).toBe('')
    expect(await page.isHidden('#suggestion')).toBe(false)
  },
  TEST_MS_MAX,
)

/** An instant in the words of the page, as far as minutes. */
const inWords = (ms: number, timeZone: string) =>
  new Date(ms).toLocaleString('de-DE', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
    timeZone,
  })

/** The date in a time zone, as the value of a date field. */
const dateIn = (ms: number, timeZone: string) =>
  new Date(ms).toLocaleDateString('sv-SE', { timeZone })

test.each(['America/Los_Angeles', 'Pacific/Kiritimati'])(
  'the page shows when the link expires, in the time zone %s and in German',
  async (timezoneId) => {
    const page = await visit({ timezoneId, locale: 'de-DE' })
    expect(await page.textContent('#expiry-hint')).toBe(de.script.expiresNever)
    expect(await page.isHidden('#expires_on')).toBe(true)
    for (const [value, days] of [
      ['365', 365],
      ['date', 2],
    ] as const) {
      const beforeMs = Date.now()
      const date = dateIn(beforeMs + days * DAY_MS, timezoneId)
      await page.selectOption('#ttl_days', value)
      if (value === 'date') {
        expect(await page.textContent('#expiry-hint')).toBe(de.script.chooseDate)
        await page.fill('#expires_on', dateIn(beforeMs, timezoneId))
        expect(await page.textContent('#expiry-hint')).toBe(de.faults['out-of-range'])
        await page.fill('#expires_on', date)
      }
      const hint = await page.textContent('#expiry-hint')
      const possible = [beforeMs, Date.now()].map((ms) => {
        const instant = inWords(ms + days * DAY_MS, timezoneId)
        return fill(de.script.expires, { instant })
      })
      expect(possible).toContain(hint)
      const received = await captureNextBody(page)
      await submit(page, { long_url: 'https://example.com/' })
      const body = JSON.parse(await received()) as { expires_at: string }
      const expiresMs = Date.parse(body.expires_at)
      expect(expiresMs).toBeGreaterThanOrEqual(beforeMs + days * DAY_MS)
      expect(dateIn(expiresMs, timezoneId)).toBe(date)
      await page.waitForSelector(`#expiry time:text-is("${inWords(expiresMs, timezoneId)}")`)
    }
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript a date is in UTC, and a date in the past is a fault of the date',
  async () => {
    const page = await visit({ javaScriptEnabled: false })
    expect(await page.isHidden('#expires_on')).toBe(true)
    const past = dateIn(Date.now(), 'UTC')
    const input = { long_url: 'https://example.com/', ttl_days: 'date' }
    await submit(page, { ...input, expires_on: past })
    await page.waitForSelector(`#expires_on-fault:text-is("${en.faults['out-of-range']}")`)
    expect(await focused(page)).toBe('expires_on')
    expect(await page.inputValue('#expires_on')).toBe(past)
    const date = dateIn(Date.now() + DAY_MS, 'UTC')
    await submit(page, { expires_on: date })
    await shortUrlOn(page)
    expect(await page.getAttribute('#expiry time', 'datetime')).toMatch(new RegExp(`^${date}T`))
    expect(await page.textContent('#expiry')).toMatch(/ UTC$/)
  },
  TEST_MS_MAX,
)

test(
  'the share button shares the short link if the browser can share, and is hidden otherwise',
  async () => {
    const page = await visit()
    await submit(page, { long_url: 'https://example.com/' })
    await shortUrlOn(page)
    expect(await page.isHidden('#share')).toBe(true)
    // The browser of the tests has no dialog to share with: this records the call instead.
    await page.addInitScript(`navigator.share = async (data) => {
      window.shared = data
      if (window.shareFault) throw new DOMException('', window.shareFault)
    }`)
    await page.reload()
    await submit(page, { long_url: 'https://example.com/' })
    const shortUrl = await shortUrlOn(page)
    await page.click('#share')
    expect(await page.evaluate('window.shared')).toEqual({ url: shortUrl })
    const status = await page.textContent('#status')
    await page.evaluate('window.shareFault = "AbortError"')
    await page.click('#share')
    expect(await page.textContent('#status')).toBe(status)
    await page.evaluate('window.shareFault = "NotAllowedError"')
    await page.click('#share')
    await page.waitForSelector(`#status:text-is("${en.script.notShared}")`, { state: 'attached' })
  },
  TEST_MS_MAX,
)

test.each([true, false])(
  'the form, its faults and its result are in German (JavaScript: %s)',
  async (javaScriptEnabled) => {
    const page = await visit({ javaScriptEnabled, locale: 'de-AT' })
    expect(await page.getAttribute('html', 'lang')).toBe('de')
    await submit(page, { long_url: 'kein Link', custom_alias: 'docs' })
    await page.waitForSelector(`#long_url-fault:text-is("${de.faults['not-absolute-http']}")`)
    await waitForFault(page, fill(de.faults.reserved, { alias: 'docs' }))
    await submit(page, { long_url: 'https://example.com/', custom_alias: '' })
    const shortUrl = await shortUrlOn(page)
    expect(await page.textContent('#expiry')).toBe(de.result.never)
    expect((await page.textContent('#status'))?.trim()).toBe(
      fill(de.script.ready, { url: shortUrl }),
    )
    const message = de.script.noResponse
    if (!javaScriptEnabled) return
    await page.route('**/v1/urls', (route) => route.abort(), { times: 1 })
    await submit(page, { long_url: 'https://example.com/' })
    await page.waitForSelector(`#message:text-is("${message}")`)
  },
  TEST_MS_MAX,
)
