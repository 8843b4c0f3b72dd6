// What the home page does around a link, in a real browser against the real process: its QR code,
// the recent links of the browser, forgiving input, and another alias if one is taken.
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { INSECURE_HOST, pauseTimers } from '../../kit/http/browser.ts'
import { createdAsRequested, startCreateApp } from '../../kit/http/create-app.ts'
import { focused, shortUrlOn, submit } from '../../kit/http/home-page.ts'
import { type QrModules, readQr } from '../../kit/http/read-qr.ts'
import { setUpPageTests } from '../../kit/http/set-up-page-tests.ts'

const TEST_MS_MAX = 180_000
const STORAGE_KEY = 'curtail.recent-links'
const scripting = [true, false]

const { visit } = setUpPageTests()

/** Runs in the page: draws the image that it shows, and reads the middle of each module. */
const drawQr = `(() => {
  const side = Number(SIDE), scale = 8
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = side * scale
  const context = canvas.getContext('2d')
  context.drawImage(document.getElementById('qr'), 0, 0, side * scale, side * scale)
  const middle = (at) => (at + 0.5) * scale
  const isDark = (x, y) => context.getImageData(middle(x), middle(y), 1, 1).data[0] < 128
  const modules = Array.from({ length: side - 8 }, (_, y) => y + 4)
  return modules.map((y) => modules.map((x) => isDark(x, y)))
})()`

/** The QR code that the page shows, and the one that it offers as a file. */
async function qrOn(page: Page): Promise<{ shown: string; fileName: string }> {
  const started = page.waitForEvent('download')
  await page.click('#qr-download')
  const download = await started
  const svg = await readFile(await download.path(), 'utf8')
  const side = /viewBox="0 0 (\d+) /.exec(svg)?.[1] ?? ''
  const modules = await page.evaluate<QrModules>(drawQr.replace('SIDE', side))
  return { shown: readQr(modules), fileName: download.suggestedFilename() }
}

const recentOn = (page: Page) => page.locator('#recent .line > a:first-child').allTextContents()

const detailsOn = async (page: Page) => {
  const items = await page.locator('#recent li').all()
  return Promise.all(items.map((item) => item.locator('p').allTextContents()))
}

test.each(scripting)(
  'the result has a QR code of the short link, also as a file and on paper (JavaScript: %s)',
  async (javaScriptEnabled) => {
    const page = await visit({ javaScriptEnabled })
    expect(await page.getAttribute('#qr', 'src')).toBeNull()
    const alias = javaScriptEnabled ? 'qr-js' : 'qr-plain'
    await submit(page, { long_url: 'https://example.com/', custom_alias: alias })
    const shortUrl = await shortUrlOn(page)
    await page.evaluate('document.getElementById("qr").decode()')
    expect(await qrOn(page)).toEqual({ shown: shortUrl, fileName: `${alias}.svg` })
    await page.emulateMedia({ media: 'print' })
    const printed = ['short', 'qr', 'create', 'copy', 'qr-download'].map((id) => `#${id}`)
    const visible = await Promise.all(printed.map((id) => page.isVisible(id)))
    expect(visible).toEqual([true, true, false, false, false])
  },
  TEST_MS_MAX,
)

test(
  'recent links survive a reload, newest first, and can be cleared',
  async () => {
    const page = await visit()
    expect(await page.isHidden('#recent')).toBe(true)
    const created: string[] = []
    for (const alias of ['recent-1', 'recent-2']) {
      const ttl_days = alias === 'recent-2' ? '1' : ''
      await submit(page, {
        long_url: `https://example.com/${alias}`,
        custom_alias: alias,
        ttl_days,
      })
      await page.waitForSelector(`#short:text("/${alias}")`)
      created.unshift((await page.textContent('#short')) ?? '')
    }
    expect(await recentOn(page)).toEqual(created)
    await page.reload()
    expect(await recentOn(page)).toEqual(created)
    expect(await detailsOn(page)).toEqual([
      [
        'https://example.com/recent-2',
        expect.stringMatching(/^Expires \d+ \w+ 20\d\d, \d\d:\d\d [A-Z]{3,}/),
      ],
      ['https://example.com/recent-1'],
    ])
    const first = page.locator('#recent li').first()
    expect(await first.locator('a.button').getAttribute('href')).toBe(`${created[0] ?? ''}.svg`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await pauseTimers(page)
    await first.locator('.copy').click()
    await page.waitForSelector('#recent .copy:text("Copied")')
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(created[0])
    expect(await page.textContent('#copy')).toBe('Copy')
    await page.click('#recent-clear')
    expect(await page.isHidden('#recent')).toBe(true)
    expect(await focused(page)).toBe('long_url')
    expect(await page.textContent('#status')).toBe('The list of recent links is empty.')
    await page.reload()
    expect(await page.isHidden('#recent')).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'recent links stay on the page that has no form because creates require an API key',
  async () => {
    const keys = { find: () => undefined, isRequired: true }
    const app = await startCreateApp(createdAsRequested, { keys })
    try {
      const page = await visit({ port: Number(new URL(app.url).port) })
      expect(await page.locator('form').count()).toBe(0)
      expect(await page.isHidden('#recent')).toBe(true)
      const link = { shortUrl: 'https://curtail.example/earlier', longUrl: 'https://example.com/' }
      const stored = JSON.stringify(JSON.stringify([link]))
      await page.evaluate(`localStorage.setItem('${STORAGE_KEY}', ${stored})`)
      await page.reload()
      expect(await recentOn(page)).toEqual([link.shortUrl])
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      await page.click('#recent .copy')
      await page.waitForSelector('#status:text("The short link was copied.")', {
        state: 'attached',
      })
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(link.shortUrl)
      await page.click('#recent-clear')
      expect(await page.isHidden('#recent')).toBe(true)
      expect(await focused(page)).toBe('main')
    } finally {
      await app.stop()
    }
  },
  TEST_MS_MAX,
)

test(
  'the page shows at most 20 recent links, and none that it did not store',
  async () => {
    const page = await visit()
    const links = Array.from({ length: 30 }, (_, at) => ({
      shortUrl: `http://localhost/${String(at)}`,
      longUrl: 'https://example.com/<b>',
    }))
    const web = 'https://example.com/'
    const foreign = [
      ...[null, 1, {}, [[]], { shortUrl: web }, { shortUrl: [web], longUrl: web }],
      ...[
        { shortUrl: web, longUrl: {} },
        { shortUrl: 'javascript:alert(1)', longUrl: '' },
      ],
    ]
    const store = (value: string) =>
      page.evaluate(`localStorage.setItem('${STORAGE_KEY}', ${JSON.stringify(value)})`)
    const expiries = ['2026-01-01T12:00:00Z', 'soon', 5] // the others are of an earlier release
    const stored = links.map((link, at) => ({ ...link, expiresAt: expiries[at] }))
    await store(JSON.stringify([...foreign, ...stored]))
    await page.reload()
    expect(await recentOn(page)).toEqual(links.slice(0, 20).map(({ shortUrl }) => shortUrl))
    const details = await detailsOn(page)
    expect(details[0]?.[1]).toMatch(/^Expired 1 Jan 2026, /)
    expect(details.slice(1)).toEqual(links.slice(1, 20).map(({ longUrl }) => [longUrl]))
    await submit(page, { long_url: 'https://example.com/' })
    const shortUrl = await shortUrlOn(page)
    expect(await recentOn(page)).toEqual([shortUrl, ...links.slice(0, 19).map((l) => l.shortUrl)])
    for (const value of ['{', 'null', '7', '{"filter":1}', '"x"']) {
      await store(value)
      await page.reload()
      expect(await page.isHidden('#recent')).toBe(true)
    }
    await submit(page, { long_url: 'https://example.com/' })
    const onlyLink = await shortUrlOn(page)
    expect(await recentOn(page)).toEqual([onlyLink])
  },
  TEST_MS_MAX,
)

test.each([
  ['disabled', 'Object.defineProperty(window, "localStorage", { get() { throw Error() } })'],
  [
    'full',
    'Storage.prototype.setItem = () => { throw new DOMException("", "QuotaExceededError") }',
  ],
])(
  'the page creates links if its storage is %s, and then shows no recent links',
  async (_state, script) => {
    const page = await visit()
    await page.addInitScript(script)
    await page.reload()
    await submit(page, { long_url: 'https://example.com/' })
    await shortUrlOn(page)
    expect(await page.isHidden('#recent')).toBe(true)
  },
  TEST_MS_MAX,
)

test.each(scripting)(
  'the form removes pasted space and adds https:// (JavaScript: %s); the API does not',
  async (javaScriptEnabled) => {
    const page = await visit({ javaScriptEnabled })
    const alias = javaScriptEnabled ? 'bare-js' : 'bare-plain'
    await submit(page, { long_url: ' example.com/a?b ', custom_alias: ` ${alias} `, ttl_days: '' })
    expect(await shortUrlOn(page)).toMatch(new RegExp(`/${alias}$`))
    expect(await page.textContent('#target')).toBe('https://example.com/a?b')
    const strict = await fetch(new URL('/v1/urls', page.url()), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'example.com/a?b' }),
    })
    expect(strict.status).toBe(422)
  },
  TEST_MS_MAX,
)

test.each(scripting)(
  'the page suggests another alias if one is taken (JavaScript: %s)',
  async (javaScriptEnabled) => {
    const page = await visit({ javaScriptEnabled })
    // The suggestions of both runs differ: one run creates its own.
    const season = javaScriptEnabled ? 'spring' : 'autumn'
    const alias = `${season}-xy`
    const input = { long_url: `https://${INSECURE_HOST}/`, custom_alias: alias }
    expect(await page.isHidden('#suggestion')).toBe(true)
    await submit(page, input)
    expect(await shortUrlOn(page)).toContain((await page.textContent('#prefix')) ?? '')
    await submit(page, input)
    await page.waitForSelector('#suggestion:not([hidden])')
    const suggested = (await page.textContent('#suggested')) ?? ''
    expect(suggested).toMatch(new RegExp(`^${season}-[0-9a-f]{2}$`))
    expect(await page.isVisible('#suggestion-use')).toBe(javaScriptEnabled)
    if (javaScriptEnabled) {
      expect(await page.textContent('#status')).toContain(`Perhaps available: ${suggested}`)
      await page.click('#suggestion-use')
      expect(await page.isHidden('#suggestion')).toBe(true)
      await page.click('#submit')
    } else {
      await submit(page, { custom_alias: suggested })
    }
    await page.waitForSelector(`#short:text("/${suggested}")`)
  },
  TEST_MS_MAX,
)
