// The page to shorten a link in a real browser against the real process: with and without
// JavaScript, by keyboard alone, and when things go wrong.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core'
import {
  createdHeadersSchema,
  createdLinkSchema,
  redirectHeadersSchema,
} from '../../../src/http/create/openapi.ts'
import { INSECURE_HOST, openBrowser, openPage, type WatchedPage } from '../../kit/http/browser.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const SETUP_MS_MAX = 650_000 // the browser may have to be installed
const TEST_MS_MAX = 30_000

let service: Standalone
let browser: Browser
let opened: WatchedPage[] = []

beforeAll(async () => {
  browser = await openBrowser()
  service = await startStandalone()
}, SETUP_MS_MAX)

afterEach(async () => {
  const seen = opened
  opened = []
  await Promise.all(seen.map(({ close }) => close()))
  expect(seen.flatMap(({ faults }) => faults)).toEqual([])
})

afterAll(async () => {
  await browser.close()
  await service.stop()
}, TEST_MS_MAX)

async function home(options: BrowserContextOptions = {}, host = '127.0.0.1'): Promise<Page> {
  const watched = await openPage(browser, options)
  opened.push(watched)
  await watched.page.goto(`http://${host}:${String(service.port)}/`)
  return watched.page
}

type Entered = Readonly<Partial<Record<'long_url' | 'custom_alias' | 'ttl_days', string>>>

async function submit(page: Page, entered: Entered): Promise<void> {
  for (const [name, text] of Object.entries(entered)) await page.fill(`#${name}`, text)
  await page.click('#submit')
}

async function shown(page: Page): Promise<string> {
  await page.waitForSelector('#result:not([hidden])')
  return (await page.textContent('#short')) ?? ''
}

async function targetOf(shortUrl: string): Promise<string | null> {
  const response = await fetch(shortUrl, { redirect: 'manual' })
  expect(response.status).toBe(302)
  redirectHeadersSchema.parse(Object.fromEntries(response.headers))
  return response.headers.get('location')
}

function focused(page: Page): Promise<string | undefined> {
  return page.evaluate<string | undefined>('document.activeElement?.id')
}

/** The requests to the API from now on. */
function apiRequests(page: Page): Request[] {
  const requests: Request[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/urls')) requests.push(request)
  })
  return requests
}

test(
  'a link is shortened without a reload, and the short link leads there',
  async () => {
    const page = await home()
    const requests = apiRequests(page)
    await page.evaluate('window.kept = true')
    await submit(page, { long_url: 'https://example.com/?a=1&b=<2>', ttl_days: '30' })
    const shortUrl = await shown(page)
    expect(await page.evaluate('window.kept')).toBe(true)
    expect(await targetOf(shortUrl)).toBe('https://example.com/?a=1&b=<2>')
    expect(await page.textContent('#target')).toBe('https://example.com/?a=1&b=<2>')
    expect(await page.textContent('#until')).toMatch(
      /^until \d+ [A-Z][a-z]+ 20\d\d at \d\d:\d\d UTC$/,
    )
    expect(await page.textContent('#status')).toContain(shortUrl)
    expect(await focused(page)).toBe('result')
    expect(await page.inputValue('#long_url')).toBe('')
    expect(requests).toHaveLength(1)
    expect(requests[0]?.headers()['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/)
    const response = await requests[0]?.response()
    createdHeadersSchema.parse(response?.headers())
    createdLinkSchema.parse(await response?.json())
  },
  TEST_MS_MAX,
)

test(
  'the copy button puts the short link on the clipboard, with and without a secure context',
  async () => {
    for (const host of ['127.0.0.1', INSECURE_HOST]) {
      const page = await home({}, host)
      if (host === '127.0.0.1') {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      }
      expect(await page.evaluate('isSecureContext')).toBe(host === '127.0.0.1')
      await submit(page, { long_url: `https://example.com/${host}` })
      const shortUrl = await shown(page)
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
  'faults of fields stand beside them, the first one has the focus, and typing takes it away',
  async () => {
    const page = await home()
    await submit(page, { long_url: 'no link', custom_alias: 'docs', ttl_days: 'ten' })
    await page.waitForSelector('#long_url[aria-invalid=true]')
    expect(await focused(page)).toBe('long_url')
    expect(await page.textContent('#long_url-fault')).toMatch(/^The long link must be an absolute/)
    expect(await page.textContent('#custom_alias-fault')).toMatch(/^The alias must be 1 to 10/)
    expect(await page.textContent('#ttl_days-fault')).toMatch(/^The number of days must be an int/)
    expect(await page.inputValue('#ttl_days')).toBe('ten')
    expect(await page.isHidden('#message')).toBe(true)
    await page.fill('#long_url', 'https://example.com/')
    expect(await page.getAttribute('#long_url', 'aria-invalid')).toBeNull()
    expect(await page.isHidden('#long_url-fault')).toBe(true)
    await submit(page, { custom_alias: '', ttl_days: '1' })
    await shown(page)
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
  },
  TEST_MS_MAX,
)

test(
  'days mean what they mean to the API: 1.0 is 1, and no number is too large to be refused',
  async () => {
    const page = await home()
    const requests = apiRequests(page)
    await submit(page, { long_url: 'https://example.com/', ttl_days: '1.0' })
    await shown(page)
    expect(requests[0]?.postDataJSON()).toMatchObject({ ttl_days: 1 })
    await page.evaluate('document.getElementById("ttl_days").removeAttribute("maxlength")')
    await submit(page, { long_url: 'https://example.com/', ttl_days: '9'.repeat(400) })
    await page.waitForSelector('#ttl_days[aria-invalid=true]')
  },
  TEST_MS_MAX,
)

test(
  'a taken alias is told beside the alias, and the result of before goes away',
  async () => {
    const page = await home()
    const entered = { long_url: 'https://example.com/1', custom_alias: 'taken-js' }
    await submit(page, entered)
    expect(await shown(page)).toMatch(/\/taken-js$/)
    await submit(page, entered)
    await page.waitForSelector('#custom_alias[aria-invalid=true]')
    expect(await page.textContent('#custom_alias-fault')).toBe(
      'The alias taken-js is in use: choose another',
    )
    expect(await focused(page)).toBe('custom_alias')
    expect(await page.isHidden('#result')).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'the same form tried again keeps its Idempotency-Key; another form has another',
  async () => {
    const page = await home()
    const requests = apiRequests(page)
    await page.route('**/v1/urls', (route) => route.abort(), { times: 2 })
    await submit(page, { long_url: 'https://example.com/retried' })
    await page.waitForSelector('#message:text("No answer came")')
    await page.click('#submit')
    await page.waitForSelector('#submit[aria-disabled=false]')
    await submit(page, { long_url: 'https://example.com/another' })
    await shown(page)
    expect(await page.isHidden('#message')).toBe(true)
    const [first, again, another] = requests.map((one) => one.headers()['idempotency-key'])
    expect(again).toBe(first)
    expect(another).not.toBe(first)
  },
  TEST_MS_MAX,
)

test(
  'a refusal for too many requests says how long to wait; an answer that is no problem says so',
  async () => {
    const page = await home()
    const responses = [
      { status: 429, headers: { 'Retry-After': '7' }, json: { detail: 'by rule' } },
      { status: 502, contentType: 'text/html', body: '<p>Bad gateway' },
    ]
    await page.route('**/v1/urls', (route) => route.fulfill(responses.shift()))
    await submit(page, { long_url: 'https://example.com/' })
    await page.waitForSelector('#message:text("try again in 7 seconds")')
    await page.click('#submit')
    await page.waitForSelector('#message:text("the status 502")')
    expect(await page.getAttribute('#message', 'role')).toBe('alert')
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript the page answers with the link, and no dead button is there',
  async () => {
    const page = await home({ javaScriptEnabled: false })
    expect(await page.isHidden('#result')).toBe(true)
    await submit(page, {
      long_url: 'https://example.com/no-js?ä',
      custom_alias: 'plain',
      ttl_days: '1',
    })
    const shortUrl = await shown(page)
    expect(shortUrl).toMatch(/\/plain$/)
    expect(await targetOf(shortUrl)).toBe('https://example.com/no-js?%C3%A4')
    expect(await page.isHidden('#copy')).toBe(true)
    expect(await page.inputValue('#long_url')).toBe('')
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript faults stand beside their fields and what was entered is kept',
  async () => {
    const page = await home({ javaScriptEnabled: false })
    await submit(page, { long_url: '"><b>x', ttl_days: '0' })
    await page.waitForSelector('#long_url[aria-invalid=true]')
    expect(await page.inputValue('#long_url')).toBe('"><b>x')
    expect(await page.textContent('#ttl_days-fault')).toMatch(/^The number of days must be/)
    const entered = { long_url: 'https://example.com/', custom_alias: 'taken', ttl_days: '' }
    await submit(page, entered)
    await shown(page)
    await submit(page, entered)
    await page.waitForSelector('#custom_alias[aria-invalid=true]')
    expect(await page.textContent('#custom_alias-fault')).toContain('choose another')
    expect(await page.inputValue('#custom_alias')).toBe('taken')
  },
  TEST_MS_MAX,
)

test(
  'the keyboard is enough',
  async () => {
    const page = await home()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const order: (string | undefined)[] = []
    for (const text of ['', '', '', 'https://example.com/keys', 'keys', '7']) {
      await page.keyboard.press('Tab')
      await page.keyboard.type(text)
      order.push(await focused(page))
    }
    expect(order.slice(3)).toEqual(['long_url', 'custom_alias', 'ttl_days'])
    await page.keyboard.press('Enter')
    expect(await shown(page)).toMatch(/\/keys$/)
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('short')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#copy:text("Copied")')
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/\/keys$/)
  },
  TEST_MS_MAX,
)
