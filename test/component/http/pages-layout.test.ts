// Every page in a real browser: it fits a phone, is accessible in the light and the dark scheme,
// enforces its content security policy, and shows which element has the focus.
import { expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { findAxeViolations } from '../../kit/http/axe.ts'
import { setUpPageTests } from '../../kit/http/set-up-page-tests.ts'

const TEST_MS_MAX = 120_000
const TOUCH_TARGET_PX_MIN = 44
const visits = [
  ...['/', '/docs', '/abuse', '/problems/alias-taken', '/not-found'].map((path) => ({ path })),
  { path: '/abuse', locale: 'de-DE' }, // its words are longer
]

const { visit, openUnchecked } = setUpPageTests()

const injectScript = `
  const script = document.createElement('script')
  script.textContent = 'document.title = "injected"'
  document.body.append(script)
  document.body.setAttribute('style', 'color: red')`

type Verify = (state: string) => Promise<void>

/** The form with faults, and then with a result: the states that show the most elements. */
async function eachState(page: Page, verify: Verify): Promise<void> {
  await page.fill('#long_url', 'x'.repeat(300))
  await page.fill('#custom_alias', 'x'.repeat(100))
  await page.selectOption('#ttl_days', 'date')
  await page.click('#submit')
  await page.waitForSelector('#long_url[aria-invalid=true]')
  await verify('faulty')
  await page.fill('#long_url', `https://example.com/${'x'.repeat(1000)}`)
  await page.fill('#custom_alias', '')
  await page.selectOption('#ttl_days', '1')
  await page.click('#submit')
  await page.waitForSelector('#result:not([hidden])')
  await verify('result')
}

/** The form of reports with faults, and the confirmation. */
async function eachAbuseState(page: Page, verify: Verify): Promise<void> {
  await page.click('#submit')
  await page.waitForSelector('#link[aria-invalid=true]')
  await verify('faulty')
  await page.fill('#link', 'abc')
  await page.selectOption('#reason', 'spam')
  await page.click('#submit')
  await page.waitForSelector('#report')
  await verify('reported')
}

test(
  'no page scrolls horizontally on a phone of 320 px, and every touch target has 44 px',
  async () => {
    for (const { path, ...others } of visits) {
      const viewport = { width: 320, height: 568 }
      const page = await visit({ path, ...others, viewport, isMobile: true })
      const verify = async (state: string) => {
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect([path, state, width]).toEqual([path, state, 320])
      }
      await verify('first')
      if ('locale' in others) await eachAbuseState(page, verify)
      if (path !== '/') continue
      await eachState(page, verify)
      const inputs = ['long_url', 'custom_alias', 'ttl_days', 'expires_on']
      await page.selectOption('#ttl_days', 'date')
      const buttons = ['submit', 'copy', 'qr-download', 'recent .copy', 'recent a.button']
      for (const selector of [...inputs, ...buttons, 'recent-clear']) {
        const box = await page.locator(`#${selector}`).boundingBox()
        expect(box?.height).toBeGreaterThanOrEqual(TOUCH_TARGET_PX_MIN)
      }
    }
  },
  TEST_MS_MAX,
)

test(
  'axe-core reports no violation of its rules in the light and in the dark scheme',
  async () => {
    // docs-page.test.ts verifies /docs.
    for (const { path, ...others } of visits.filter((one) => one.path !== '/docs')) {
      const page = await visit({ path, ...others })
      const verify = async (state: string) => {
        await page.emulateMedia({ colorScheme: 'light' })
        expect([path, state, await findAxeViolations(page)]).toEqual([path, state, []])
        await page.emulateMedia({ colorScheme: 'dark' })
        const inDark = await findAxeViolations(page, ['color-contrast']) // no other rule differs
        expect([path, state, inDark]).toEqual([path, state, []])
      }
      await verify('first')
      if (path === '/') await eachState(page, verify)
      if ('locale' in others) await eachAbuseState(page, verify)
    }
  },
  TEST_MS_MAX,
)

test(
  'the light and the dark scheme differ, and the focused element has an outline',
  async () => {
    const grounds: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await visit({ colorScheme })
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
  'the content security policy blocks injected scripts and styles',
  async () => {
    const { page, faults, close } = await openUnchecked()
    await page.evaluate(injectScript)
    expect(await page.title()).not.toBe('injected')
    expect(faults.join()).toMatch(/script.*style/s)
    await close()
  },
  TEST_MS_MAX,
)

test(
  'the 404 page links to the form',
  async () => {
    const page = await visit({ path: '/not-found' })
    expect(await page.textContent('h1')).toBe('There is nothing here')
    await page.click('text=Create a short link')
    await page.waitForSelector('#create')
  },
  TEST_MS_MAX,
)
