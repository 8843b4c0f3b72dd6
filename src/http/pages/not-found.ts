// The pages for links that do not redirect. The 404 page does not reveal whether a link existed.
import type { IncomingMessage } from 'node:http'
import { html } from './html.ts'
import { renderLayout } from './layout.ts'
import type { Strings } from './strings/en.ts'
import { inEachLanguage } from './strings/negotiate.ts'

/** The 404 page for a client; it is the same for every path. */
export const notFoundPage = inEachLanguage((strings) => {
  const { title, heading, meaning, advice } = strings.notFound
  return renderLonePage(strings, { title, status: 404, heading, sentences: [meaning, advice] })
})

const blockedPages = inEachLanguage((strings) => {
  const { title, heading } = strings.blocked
  const render = (status: 410 | 451) =>
    renderLonePage(strings, { title, status, heading, sentences: [strings.blocked[status]] })
  return { 410: render(410), 451: render(451) }
})

/** The page for a link whose target is blocked. */
export function blockedPage(req: IncomingMessage, status: 410 | 451): string {
  return blockedPages(req)[status]
}

interface LoneContent {
  readonly title: string
  readonly status: number
  readonly heading: string
  readonly sentences: readonly string[]
}

function renderLonePage(strings: Strings, content: LoneContent): string {
  const { title, status, heading, sentences } = content
  return renderLayout({
    title,
    unlisted: true,
    strings,
    main: html`<section class="card lone">
      <p class="status-code" aria-hidden="true">${status}</p>
      <h1>${heading}</h1>
      ${sentences.map((sentence) => html`<p>${sentence}</p>`)}
      <p><a class="button" href="/">${strings.home.heading}</a></p>
    </section>`,
  })
}
