// The 404 page. It does not reveal whether a link ever existed.
import { html } from './html.ts'
import { renderLayout } from './layout.ts'

const page = renderLayout({
  title: 'Nothing here – Curtail',
  unlisted: true,
  main: html`<section class="card lone">
    <p class="status-code" aria-hidden="true">404</p>
    <h1>There is nothing here</h1>
    <p>
      No short link has this address. The link may have expired or been removed, or a character of
      the address is missing.
    </p>
    <p>
      Short links are case-sensitive: please compare the address with the link that you received.
    </p>
    <p><a class="button" href="/">Create a short link</a></p>
  </section>`,
})

/** The page; it is the same for every path. */
export function renderNotFoundPage(): string {
  return page
}
