// The browser and the standalone process that the page tests of one file share. A page that a test
// opens with `visit` must have no faults when the test completes.
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { type Standalone, startStandalone } from '../processes/standalone.ts'
import { openBrowser, openPage, type WatchedPage } from './browser.ts'

const SETUP_MS_MAX = 650_000 // the browser may have to be installed
const CLOSE_MS_MAX = 60_000

/** What to open. */
interface Visit extends BrowserContextOptions {
  readonly path?: string
  /** The host name in the URL. */
  readonly host?: string
  /** The port of another service than the shared one. */
  readonly port?: number
}

/** Opens pages of the service. */
export interface PageTests {
  readonly visit: (visit?: Visit) => Promise<Page>
  /** Opens the home page; the test verifies its faults and closes it. */
  readonly openUnchecked: () => Promise<WatchedPage>
}

/** Registers the hooks that start and stop both, close the pages and verify their faults. */
export function setUpPageTests(): PageTests {
  let service: Standalone
  let browser: Browser
  let opened: WatchedPage[] = []

  beforeAll(async () => {
    browser = await openBrowser()
    service = await startStandalone()
  }, SETUP_MS_MAX)

  afterEach(async () => {
    const pages = opened
    opened = []
    await Promise.all(pages.map(({ close }) => close()))
    expect(pages.flatMap(({ faults }) => faults)).toEqual([])
  })

  afterAll(async () => {
    await browser.close()
    await service.stop()
  }, CLOSE_MS_MAX)

  const open = async ({ path = '/', host = '127.0.0.1', port, ...options }: Visit = {}) => {
    const watched = await openPage(browser, options)
    await watched.page.goto(`http://${host}:${String(port ?? service.port)}${path}`)
    return watched
  }
  return {
    async visit(visit) {
      const watched = await open(visit)
      opened.push(watched)
      return watched.page
    },
    openUnchecked: () => open(),
  }
}
