// Every page in a real browser: it fits a phone, can be read in light and dark, keeps the content
// policy, and shows where the keyboard is.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openBrowser, openPage, type WatchedPage } from '../../kit/http/browser.ts'
import { measureContrast } from '../../kit/http/contrast.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const SETUP_MS_MAX = 650_000 // the browser may have to be installed
const TEST_MS_MAX = 60_000
const pages = ['/', '/docs', '/problems/alias-taken', '/not-there'] as const

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

async function visit(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const watched = await openPage(browser, options)
  opened.push(watched)
  await watched.page.goto(service.baseUrl + path)
  return watched.page
}

const slipIn = `
  const script = document.createElement('script')
  script.textContent = 'document.title = "slipped in"'
  document.body.append(script)
  document.body.setAttribute('style', 'color: red')`

/** The form with faults, and then the form with a result: the states with the most on the page. */
async function eachState(page: Page, look: (state: string) => Promise<void>): Promise<void> {
  await page.fill('#long_url', 'x'.repeat(300))
  await page.fill('#custom_alias', 'x'.repeat(100))
  await page.click('#submit')
  await page.waitForSelector('#long_url[aria-invalid=true]')
  await look('faulty')
  await page.fill('#long_url', `https://example.com/${'x'.repeat(1000)}`)
  await page.fill('#custom_alias', '')
  await page.click('#submit')
  await page.waitForSelector('#result:not([hidden])')
  await look('result')
}

test(
  'no page scrolls sideways on the narrowest phone, and what is tapped is large enough',
  async () => {
    for (const path of pages) {
      const page = await visit(path, { viewport: { width: 320, height: 568 }, isMobile: true })
      const look = async (state: string) => {
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect([path, state, width]).toEqual([path, state, 320])
      }
      await look('first')
      if (path !== '/') continue
      await eachState(page, look)
      for (const id of ['long_url', 'custom_alias', 'ttl_days', 'submit', 'copy']) {
        const box = await page.locator(`#${id}`).boundingBox()
        expect(box?.height).toBeGreaterThanOrEqual(44)
      }
    }
  },
  TEST_MS_MAX,
)

test.each(['light', 'dark'] as const)(
  'every text has a contrast of at least 4.5 to 1 in %s',
  async (colorScheme) => {
    for (const path of pages) {
      const page = await visit(path, { colorScheme })
      const look = async () => {
        const { faint, texts } = await measureContrast(page)
        expect([path, faint]).toEqual([path, []])
        expect(texts).toBeGreaterThan(5)
      }
      await look()
      if (path === '/') await eachState(page, look)
    }
  },
  TEST_MS_MAX,
)

test(
  'light and dark differ, and the focus can be seen',
  async () => {
    const grounds: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await visit('/', { colorScheme })
      grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
      for (const id of ['long_url', 'submit']) {
        await page.focus(`#${id}`)
        const width = await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')
        expect(width).toBe('3px')
      }
    }
    expect(grounds[0]).not.toBe(grounds[1])
  },
  TEST_MS_MAX,
)

test(
  'the content policy stops what would be slipped into a page',
  async () => {
    const watched = await openPage(browser)
    await watched.page.goto(service.baseUrl)
    await watched.page.evaluate(slipIn)
    expect(await watched.page.title()).not.toBe('slipped in')
    expect(watched.faults.join()).toMatch(/script.*style/s)
    await watched.close()
  },
  TEST_MS_MAX,
)

test(
  'an address that leads nowhere is a page that leads to the form',
  async () => {
    const page = await visit('/not-there')
    expect(await page.textContent('h1')).toBe('There is nothing here')
    await page.click('text=Shorten a link')
    await page.waitForSelector('#shorten')
  },
  TEST_MS_MAX,
)

test(
  'the reference needs no script and leads to the problem types',
  async () => {
    const page = await visit('/docs', { javaScriptEnabled: false })
    expect(await page.textContent('#createLink h3')).toBe('Create a short link')
    expect(await page.textContent('#createLink pre')).toContain('/v1/urls')
    expect(await page.locator('script').count()).toBe(0)
    await page.click('a[href="/problems/alias-taken"]')
    expect(await page.textContent('h1')).toBe('The alias is taken')
  },
  TEST_MS_MAX,
)
