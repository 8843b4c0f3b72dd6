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
      No short link leads on from this address. It may have ended, it may have been taken down, or a
      character of it got lost on the way.
    </p>
    <p>
      Short links tell capital letters from small ones, so please compare yours with the one you
      were given.
    </p>
    <p><a class="button" href="/">Shorten a link</a></p>
  </section>`,
})

/** The page; it is the same for every path. */
export function renderNotFoundPage(): string {
  return page
}
