// A browser for page tests. Each page records faults: violations of the content security policy,
// exceptions, and requests to other hosts.
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { chromiumArgs, findChromium } from '../../dependencies/chromium.ts'

/** A page and its faults so far. */
export interface WatchedPage {
  readonly page: Page
  readonly faults: readonly string[]
  readonly close: () => Promise<void>
}

/** A host name that resolves to this machine and, unlike localhost, is not a secure context. */
export const INSECURE_HOST = 'insecure.test'

const ACTION_MS_MAX = 20_000
const START_MS_MAX = 120_000
/** The clock cannot be paused at a time that has passed. */
const PAUSE_AHEAD_MS = 3_600_000

/** Starts the browser; installs it first if necessary. */
export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: await findChromium(),
    timeout: START_MS_MAX,
    args: [...chromiumArgs, `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
  })
}

/**
 * Stops the timers of a page until `page.clock.runFor`: what it shows for a short time then stays,
 * however long this process takes to look.
 */
export async function pauseTimers(page: Page): Promise<void> {
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + PAUSE_AHEAD_MS)
}

/**
 * Captures the body of the response to the next `fetch` of a page, as the page receives it. (The
 * browser does not always keep a body for `Response.text()` of Playwright.)
 */
export async function captureNextBody(page: Page): Promise<() => Promise<string>> {
  await page.evaluate(`void (window.nextBody = new Promise((resolve, reject) => {
    const original = window.fetch
    window.fetch = async (...request) => {
      window.fetch = original
      const response = await original(...request)
      response.clone().text().then(resolve, reject)
      return response
    }
  }))`)
  return () => page.evaluate<string>('window.nextBody')
}

/** Opens a page in a context of its own. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(ACTION_MS_MAX)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    const text = message.text()
    // The browser logs every 4xx response as an error; some tests expect one.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) faults.push(text)
  })
  page.on('request', (request) => {
    const { hostname } = new URL(request.url())
    if (!['127.0.0.1', 'localhost', INSECURE_HOST].includes(hostname)) faults.push(request.url())
  })
  page.on('requestfailed', (request) => {
    // A navigation, or the close of the page, aborts images that are still loading.
    const isAborted = request.failure()?.errorText === 'net::ERR_ABORTED'
    if (request.resourceType() !== 'fetch' && !isAborted) faults.push(`${request.url()} failed`)
  })
  return { page, faults, close: () => context.close() }
}
