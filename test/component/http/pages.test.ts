// The home page, which creates links, in a real browser against the real process: with and without
// JavaScript, by keyboard alone, and with requests that fail.
import { expect, test } from '@jest/globals'
import type { Page, Request } from 'playwright-core'
import {
  createdHeadersSchema,
  createdLinkSchema,
  redirectHeadersSchema,
} from '../../../src/http/create/openapi.ts'
import { captureNextBody, INSECURE_HOST, pauseTimers } from '../../kit/http/browser.ts'
import { focused, shortUrlOn, submit } from '../../kit/http/home-page.ts'
import { setUpPageTests } from '../../kit/http/set-up-page-tests.ts'

const TEST_MS_MAX = 180_000

const { visit, openUnchecked } = setUpPageTests()

async function targetOf(shortUrl: string): Promise<string | null> {
  const response = await fetch(shortUrl, { redirect: 'manual' })
  expect(response.status).toBe(302)
  redirectHeadersSchema.parse(Object.fromEntries(response.headers))
  return response.headers.get('location')
}

/** Collects the requests that the page sends to the API from now on. */
function apiRequests(page: Page): Request[] {
  const requests: Request[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/urls')) requests.push(request)
  })
  return requests
}

test(
  'the page creates a link without a reload, and the short link redirects to its target',
  async () => {
    const page = await visit({ timezoneId: 'UTC' })
    const requests = apiRequests(page)
    const body = await captureNextBody(page)
    await page.evaluate('window.kept = true')
    await submit(page, { long_url: 'https://example.com/?a=1&b=<2>', ttl_days: '30' })
    const shortUrl = await shortUrlOn(page)
    expect(await page.evaluate('window.kept')).toBe(true)
    expect(await targetOf(shortUrl)).toBe('https://example.com/?a=1&b=<2>')
    expect(await page.textContent('#target')).toBe('https://example.com/?a=1&b=<2>')
    expect(await page.textContent('#expiry')).toMatch(/^\d+ [A-Z][a-z]+ 20\d\d at \d\d:\d\d UTC$/)
    expect(await page.textContent('#status')).toContain(shortUrl)
    expect(await focused(page)).toBe('result')
    expect(await page.inputValue('#long_url')).toBe('')
    expect(requests).toHaveLength(1)
    expect(requests[0]?.headers()['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/)
    const response = await requests[0]?.response()
    createdHeadersSchema.parse(response?.headers())
    createdLinkSchema.parse(JSON.parse(await body()))
  },
  TEST_MS_MAX,
)

test(
  'the copy button copies the short link, with and without a secure context',
  async () => {
    for (const host of ['127.0.0.1', INSECURE_HOST]) {
      const page = await visit({ host })
      if (host === '127.0.0.1') {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      }
      expect(await page.evaluate('isSecureContext')).toBe(host === '127.0.0.1')
      await submit(page, { long_url: `https://example.com/${host}` })
      const shortUrl = await shortUrlOn(page)
      await pauseTimers(page)
      await page.click('#copy')
      await page.waitForSelector('#copy:text("Copied")')
      expect(await page.textContent('#status')).toBe('The short link was copied.')
      await page.focus('#custom_alias')
      await page.keyboard.press('Control+V')
      expect(await page.inputValue('#custom_alias')).toBe(shortUrl)
    }
  },
  TEST_MS_MAX,
)

test(
  'the page shows each fault at its field and focuses the first; input removes the fault',
  async () => {
    const page = await visit()
    await submit(page, { long_url: 'no link', custom_alias: 'docs', ttl_days: 'date' })
    await page.waitForSelector('#long_url[aria-invalid=true]')
    expect(await focused(page)).toBe('long_url')
    expect(await page.textContent('#long_url-fault')).toMatch(/^The long link is not a web address/)
    expect(await page.textContent('#custom_alias-fault')).toBe(
      'The alias docs is reserved for the service itself: choose another.',
    )
    expect(await page.textContent('#expires_on-fault')).toMatch(/^Choose a date from tomorrow on/)
    expect(await page.getAttribute('#expires_on', 'aria-invalid')).toBe('true')
    expect(await page.isHidden('#message')).toBe(true)
    await page.fill('#long_url', 'https://example.com/')
    expect(await page.getAttribute('#long_url', 'aria-invalid')).toBeNull()
    expect(await page.isHidden('#long_url-fault')).toBe(true)
    await submit(page, { custom_alias: '', ttl_days: '1' })
    await shortUrlOn(page)
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
  },
  TEST_MS_MAX,
)

test(
  'the page reports a taken alias at its field and hides the previous result',
  async () => {
    const page = await visit()
    // The check of the alias reports the target of a taken one, which the browser does not request.
    const input = { long_url: `https://${INSECURE_HOST}/1`, custom_alias: 'taken-js' }
    await submit(page, input)
    expect(await shortUrlOn(page)).toMatch(/\/taken-js$/)
    await submit(page, input)
    // Not for the fault: on a slow machine, the check of the alias shows it before the response.
    await page.waitForSelector('#result', { state: 'hidden' })
    expect(await page.getAttribute('#custom_alias', 'aria-invalid')).toBe('true')
    expect(await page.textContent('#custom_alias-fault')).toBe(
      'The alias taken-js is taken by another link: choose another.',
    )
    expect(await focused(page)).toBe('custom_alias')
  },
  TEST_MS_MAX,
)

test(
  'a fault of an alias that was edited meanwhile is shown above the form, not at the new alias',
  async () => {
    const page = await visit()
    const released = Promise.withResolvers<undefined>()
    await page.route('**/v1/urls', async (route) => {
      await released.promise
      await route.fulfill({ status: 409, json: { type: '/problems/alias-taken' } })
    })
    await submit(page, { long_url: 'https://example.com/', custom_alias: 'sent' })
    await page.fill('#custom_alias', 'edited')
    released.resolve(undefined)
    await page.waitForSelector('#message:text("The alias sent is taken")')
    expect(await page.textContent('#custom_alias-fault')).toBe('')
    expect(await page.getAttribute('#custom_alias', 'aria-invalid')).toBeNull()
    expect(await page.isHidden('#suggestion')).toBe(true)
  },
  TEST_MS_MAX,
)

test.each(['expiry-hint', 'qr-download', 'expires_on-fault'])(
  'on a page of another release, without the element %s, the form works as without JavaScript',
  async (id) => {
    const { page, faults, close } = await openUnchecked()
    await page.route('**/', async (route) => {
      const response = await route.fetch()
      const body = (await response.text()).replace(`id="${id}"`, '')
      await route.fulfill({ response, body })
    })
    await page.reload()
    await page.evaluate('window.kept = true')
    await submit(page, { long_url: 'https://example.com/other-release' })
    const shortUrl = await shortUrlOn(page)
    expect(await page.evaluate('window.kept')).toBeUndefined()
    expect(await targetOf(shortUrl)).toBe('https://example.com/other-release')
    const fault = `Cannot start page.js: the page has no element ${id}`
    await page.waitForLoadState() // scripts run after the result is shown
    expect(faults).toEqual([fault, fault]) // on the page, and on the result
    await close()
  },
  TEST_MS_MAX,
)

test(
  'the page retries a form with the same Idempotency-Key; another form has another key',
  async () => {
    const page = await visit()
    const requests = apiRequests(page)
    await page.route('**/v1/urls', (route) => route.abort(), { times: 2 })
    await submit(page, { long_url: 'https://example.com/retried' })
    await page.waitForSelector('#message:text("No response arrived")')
    await page.click('#submit')
    await page.waitForSelector('#submit[aria-disabled=false]')
    await submit(page, { long_url: 'https://example.com/another' })
    await shortUrlOn(page)
    expect(await page.isHidden('#message')).toBe(true)
    const [first, retry, other] = requests.map((one) => one.headers()['idempotency-key'])
    expect(retry).toBe(first)
    expect(other).not.toBe(first)
  },
  TEST_MS_MAX,
)

test(
  'the page shows when to retry after a 429, and the status of a response that is not a problem',
  async () => {
    const page = await visit({ timezoneId: 'UTC' })
    await page.clock.setFixedTime('2027-01-01T12:00:00.500Z')
    const type = 'https://curtail.example/problems'
    const responses = [
      [{ status: 429, headers: { 'Retry-After': '7' } }, 'retry after 12:00:08.'],
      [
        { status: 429, headers: { 'Retry-After': '8' }, json: { type: 7 } },
        'retry after 12:00:09.',
      ],
      [{ status: 429, headers: { 'Retry-After': '86400' } }, 'retry after 2 Jan 2027, 12:00:01.'],
      [{ status: 429 }, 'retry after 12:00:02.'],
      [{ status: 502, contentType: 'text/html', body: '<p>Bad gateway' }, 'status 502'],
      [{ status: 500, json: null }, 'status 500'],
      [{ status: 501, json: { type: [], detail: 1, errors: 'x' } }, 'status 501'],
      [{ status: 503, json: { type: `${type}/unavailable` } }, 'creates no second link'],
      [{ status: 408, json: { type: `${type}/request-timeout` } }, 'took too long to arrive'],
    ] as const
    await page.fill('#long_url', 'https://example.com/')
    for (const [response, sentence] of responses) {
      await page.route('**/v1/urls', (route) => route.fulfill(response), { times: 1 })
      await page.click('#submit')
      await page.waitForSelector(`#message:text("${sentence}")`)
    }
    expect(await page.getAttribute('#message', 'role')).toBe('alert')
    await submit(page, { long_url: 'https://example.com/' })
    await shortUrlOn(page)
    await page.route('**/v1/urls', (route) => route.fulfill({ status: 429 }), { times: 1 })
    await submit(page, { long_url: 'https://example.com/' })
    await page.waitForSelector('#message:not(:empty)')
    expect(await page.textContent('#status')).toBe('')
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript the page shows the link and no copy button',
  async () => {
    const page = await visit({ javaScriptEnabled: false })
    expect(await page.isHidden('#result')).toBe(true)
    await submit(page, {
      long_url: 'https://example.com/no-js?ä',
      custom_alias: 'plain',
      ttl_days: '1',
    })
    const shortUrl = await shortUrlOn(page)
    expect(shortUrl).toMatch(/\/plain$/)
    expect(await targetOf(shortUrl)).toBe('https://example.com/no-js?%C3%A4')
    expect(await page.isHidden('#copy')).toBe(true)
    expect(await page.inputValue('#long_url')).toBe('')
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript the page shows each fault at its field and keeps the input',
  async () => {
    const page = await visit({ javaScriptEnabled: false })
    await submit(page, { long_url: '"><b>x', ttl_days: 'date' })
    await page.waitForSelector('#long_url[aria-invalid=true]')
    expect(await page.inputValue('#long_url')).toBe('"><b>x')
    expect(await page.inputValue('#ttl_days')).toBe('date')
    expect(await page.textContent('#expires_on-fault')).toMatch(/^Choose a date/)
    const input = { long_url: 'https://example.com/', custom_alias: 'taken', ttl_days: '' }
    await submit(page, input)
    await shortUrlOn(page)
    await submit(page, input)
    await page.waitForSelector('#custom_alias[aria-invalid=true]')
    expect(await page.textContent('#custom_alias-fault')).toContain('choose another')
    expect(await page.inputValue('#custom_alias')).toBe('taken')
  },
  TEST_MS_MAX,
)

test(
  'the page can be used by keyboard alone',
  async () => {
    const page = await visit({ timezoneId: 'UTC' })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const order: (string | undefined)[] = []
    const date = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10)
    const typed = date.replace(/(\d+)-(\d+)-(\d+)/, '$2$3$1') // as the field shows it
    for (const value of ['', '', '', 'https://example.com/keys', 'keys', '', typed]) {
      await page.keyboard.press('Tab')
      await page.keyboard.type(value)
      order.push(await focused(page))
      // Letters that select an option must follow each other within a second.
      if (order.at(-1) === 'ttl_days') await page.keyboard.press('End')
    }
    expect(order.slice(3)).toEqual(['long_url', 'custom_alias', 'ttl_days', 'expires_on'])
    await page.keyboard.press('Enter')
    expect(await shortUrlOn(page)).toMatch(/\/keys$/)
    expect(await page.getAttribute('#expiry time', 'datetime')).toMatch(new RegExp(`^${date}T`))
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('short')
    await pauseTimers(page)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#copy:text("Copied")')
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/\/keys$/)
  },
  TEST_MS_MAX,
)
