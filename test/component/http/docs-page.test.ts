// The API reference in a real browser against the real process: its size, its forms that send
// requests, its copy buttons, by keyboard alone, and without JavaScript.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { findAxeViolations } from '../../kit/http/axe.ts'
import { captureNextBody, INSECURE_HOST, pauseTimers } from '../../kit/http/browser.ts'
import { setUpPageTests } from '../../kit/http/set-up-page-tests.ts'

const TEST_MS_MAX = 180_000
const AXE_MS_MAX = 120_000
const COPIED_MS = 2000
const MAIN_PX_MAX = 3000
const SHOWN_BYTES_MAX = 65_536
const ids = ['createLink', 'resolveLink', 'probeLink', 'getQrCode'] as const

const { visit } = setUpPageTests()
let target: Server
let targetUrl: string
let targetRequests = 0

beforeAll(async () => {
  target = createServer((_req, res) => {
    targetRequests++
    res.end('The target')
  })
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
  targetUrl = `http://${INSECURE_HOST}:${(target.address() as AddressInfo).port}/target`
})

afterAll(() => {
  target.close()
  target.closeAllConnections()
})

const open = (options: Parameters<typeof visit>[0] = {}) => visit({ path: '/docs', ...options })
const openAll = (page: Page) =>
  page.evaluate('document.querySelectorAll("details").forEach((one) => (one.open = true))')

/** Sends the form of an operation; returns what the page shows of the request and response. */
async function send(page: Page, id: (typeof ids)[number]) {
  await page.click(`#${id} .try button`)
  await page.waitForSelector(`#${id} .exchange:not([hidden])`)
  const shown = async (name: string) => (await page.textContent(`#${id} .${name}`)) ?? ''
  return { request: await shown('request'), response: await shown('response') }
}

test(
  `its main content is at most ${MAIN_PX_MAX} px high on a screen of 1280 px`,
  async () => {
    const page = await open({ viewport: { width: 1280, height: 800 } })
    const { height = 0 } = (await page.locator('main').boundingBox()) ?? {}
    expect(height).toBeGreaterThan(500)
    expect(height).toBeLessThan(MAIN_PX_MAX)
    for (const id of ids.slice(0, 2)) {
      expect(await page.isVisible(`#${id} .command code`)).toBe(true)
      expect(await page.isVisible(`#${id} .try button`)).toBe(true)
    }
  },
  TEST_MS_MAX,
)

test.each(['light', 'dark'] as const)(
  'in the %s scheme axe-core finds no violation, and on a phone of 320 px nothing overflows',
  async (colorScheme) => {
    const viewport = { width: 320, height: 568 }
    const page = await open({ viewport, isMobile: true, colorScheme })
    expect(await findAxeViolations(page)).toEqual([])
    await openAll(page)
    await page.fill('#createLink-body', JSON.stringify({ long_url: targetUrl }))
    for (const id of ids) await send(page, id)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    expect(await findAxeViolations(page)).toEqual([])
  },
  AXE_MS_MAX,
)

test(
  'a form creates a link and shows the exact request and response; the next form resolves the link',
  async () => {
    const page = await open()
    const body = JSON.stringify({ long_url: targetUrl })
    await page.fill('#createLink-Idempotency-Key', 'docs-1')
    await page.fill('#createLink-X-API-Key', 'curtail_secret')
    await page.fill('#createLink-body', body)
    const sent = page.waitForRequest('**/v1/urls')
    const receivedBody = await captureNextBody(page)
    const { request, response } = await send(page, 'createLink')
    const headers = { 'idempotency-key': 'docs-1', 'x-api-key': 'curtail_secret' }
    expect((await sent).headers()).toMatchObject(headers)
    expect((await sent).postData()).toBe(body)
    expect(request.split('\n')).toEqual([
      'POST /v1/urls',
      `Host: ${new URL(page.url()).host}`,
      'X-API-Key: ••••••••',
      'Idempotency-Key: docs-1',
      'Content-Type: application/json',
      '',
      body,
    ])
    const received = await (await sent).response()
    expect(response).toContain('201 Created\n')
    for (const [name, value] of Object.entries(received?.headers() ?? {})) {
      expect(response).toContain(`\n${name}: ${value}\n`)
    }
    expect(response.endsWith(`\n\n${await receivedBody()}`)).toBe(true)
    expect(await page.textContent('#status')).toBe('Response: 201 Created')
    expect(await page.inputValue('#resolveLink-code')).toMatch(/^[0-9A-Za-z]{7}$/)
    await resolveOn(page)
  },
  TEST_MS_MAX,
)

/** A browser hides redirects from pages. The page links to the short link; it sends no request. */
async function resolveOn(page: Page): Promise<void> {
  const { request, response } = await send(page, 'resolveLink')
  const path = `/${await page.inputValue('#resolveLink-code')}`
  expect(request).toContain(`GET ${path}\n`)
  expect(response).toMatch(/^The response is a redirect \(301 or 302\)\./)
  expect(targetRequests).toBe(0)
  await page.click('#resolveLink .response a')
  await page.waitForURL(targetUrl)
  expect(await page.textContent('body')).toBe('The target')
}

test(
  'a form shows problems of the service, and never sends a code that is another path',
  async () => {
    const page = await open()
    await page.fill('#createLink-body', '{"long_url":1}')
    const rejected = await send(page, 'createLink')
    expect(rejected.response).toMatch(/^422 Unprocessable Entity\n/)
    expect(rejected.response).toContain('"pointer":"/long_url"')
    await page.fill('#createLink-body', '{')
    expect((await send(page, 'createLink')).response).toMatch(/^400 Bad Request\n/)
    const paths: string[] = []
    page.on('request', (request) => paths.push(new URL(request.url()).pathname))
    for (const code of ['.', '..', '../docs?a#b', 'unknown']) {
      await page.fill('#resolveLink-code', code)
      await page.click('#resolveLink .try button')
    }
    await page.waitForSelector('#resolveLink .exchange:not([hidden])')
    expect(paths).toEqual(['/unknown'])
    const unknown = await send(page, 'resolveLink')
    expect(unknown.request).toContain('GET /unknown\n')
    expect(unknown.response).toMatch(/^404 Not Found\n.*"type":".*\/problems\/not-found"/s)
  },
  TEST_MS_MAX,
)

test(
  'a form shows why no response arrived, and at most 64 KiB of a body',
  async () => {
    const page = await open()
    await page.fill('#createLink-X-API-Key', 'ключ')
    await page.click('#createLink .try button')
    await page.waitForSelector('#createLink .failure:text("The request failed")')
    expect(await page.isHidden('#createLink .exchange')).toBe(true)
    expect(await page.textContent('#createLink .failure')).not.toContain('The outcome is unknown')
    await page.route('**/spring-26', (route) => route.abort(), { times: 1 })
    await page.click('#resolveLink .try button')
    await page.waitForSelector('#resolveLink .failure:text("The request failed")')
    await page.route('**/spring-26', (route) => route.fulfill({ body: 'x'.repeat(1_000_000) }))
    const { response } = await send(page, 'resolveLink')
    expect(/x{100,}/.exec(response)?.[0]).toHaveLength(SHOWN_BYTES_MAX)
    expect(response).toContain('(The rest of the body is not shown.)')
    expect(await page.isHidden('#resolveLink .failure')).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'after a failed or timed-out create a form shows whether a retry is safe',
  async () => {
    const page = await open()
    await page.route('**/v1/urls', (route) => route.abort(), { times: 1 })
    await page.click('#createLink .try button')
    const unsafe = 'The outcome is unknown: without an Idempotency-Key, a retry can create a second'
    await page.waitForSelector(`#createLink .failure:text("${unsafe}")`)
    await page.route('**/v1/urls', () => undefined) // no response
    await page.evaluate(`{
      const { timeout } = AbortSignal
      AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 100)
    }`)
    await page.fill('#createLink-Idempotency-Key', 'docs-2')
    await page.click('#createLink .try button')
    const safe = 'The outcome is unknown: a retry with the same Idempotency-Key is safe.'
    await page.waitForSelector(`#createLink .failure:text("No response within 15 s. ${safe}")`)
    expect(await page.isHidden('#createLink .exchange')).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'each copy button copies its command, with and without a secure context',
  async () => {
    for (const host of ['127.0.0.1', INSECURE_HOST]) {
      const page = await open({ host })
      if (host === '127.0.0.1') {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      }
      await openAll(page)
      await pauseTimers(page)
      for (const id of ids) {
        await page.click(`#${id} .copy`)
        await page.waitForSelector(`#${id} .copy:text("Copied")`)
        expect(await page.textContent('#status')).toBe('The command was copied.')
        await page.fill('#createLink-body', '')
        await page.focus('#createLink-body')
        await page.keyboard.press('Control+V')
        const command = await page.textContent(`#${id} .command code`)
        expect(await page.inputValue('#createLink-body')).toBe(command)
        await page.clock.runFor(COPIED_MS)
        expect(await page.textContent(`#${id} .copy`)).toBe('Copy')
      }
    }
  },
  TEST_MS_MAX,
)

test(
  'the page can be used by keyboard alone: a link opens a closed section, Enter sends its form',
  async () => {
    const page = await open()
    await page.focus('.contents a[href="#getQrCode"]')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#getQrCode .copy', { state: 'visible' })
    const order: unknown[] = []
    for (let at = 0; at < 10 && order.at(-1) !== 'getQrCode-code'; at++) {
      await page.keyboard.press('Tab')
      order.push(await page.evaluate('document.activeElement.id || document.activeElement.tagName'))
    }
    expect(order.slice(-3)).toEqual(['SUMMARY', 'BUTTON', 'getQrCode-code'])
    await page.keyboard.press('Enter')
    await page.waitForSelector('#getQrCode .response:text("image/svg+xml")')
  },
  TEST_MS_MAX,
)

test(
  'a change of the fragment opens the section that contains its target',
  async () => {
    const page = await open()
    expect(await page.isHidden('#header-ETag')).toBe(true)
    // Chromium itself opens the section only when it navigates.
    await page.evaluate(`{
      history.replaceState(null, '', '#header-ETag')
      dispatchEvent(new HashChangeEvent('hashchange'))
    }`)
    expect(await page.isVisible('#header-ETag')).toBe(true)
    expect(await page.evaluate('scrollY')).toBeGreaterThan(0)
  },
  TEST_MS_MAX,
)

test(
  'without JavaScript the page shows the commands and no form; the problem types have links',
  async () => {
    const page = await open({ javaScriptEnabled: false })
    expect(await page.textContent('#createLink h2')).toMatch(/^Create a short link/)
    for (const summary of await page.locator('details.card > summary').all()) await summary.click()
    for (const id of ids) {
      expect(await page.isVisible(`#${id} .command code`)).toBe(true)
      expect(await page.isHidden(`#${id} .try`)).toBe(true)
      expect(await page.isHidden(`#${id} .copy`)).toBe(true)
    }
    await page.click('#createLink .errors summary')
    await page.click('#createLink a[href="/problems/alias-taken"]')
    expect(await page.textContent('h1')).toBe('The alias is taken')
  },
  TEST_MS_MAX,
)
