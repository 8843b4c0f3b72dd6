// The pages for links that do not redirect. The 404 page does not reveal whether a link existed.
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

/** The page for a link whose target is blocked. */
export function renderBlockedPage(status: 410 | 451): string {
  const reason = status === 451 ? ' for legal reasons' : ''
  return renderLayout({
    title: 'Blocked – Curtail',
    unlisted: true,
    main: html`<section class="card lone">
      <p class="status-code" aria-hidden="true">${status}</p>
      <h1>This link is blocked</h1>
      <p>The operator of this service blocks the target of this link${reason}.</p>
      <p><a class="button" href="/">Create a short link</a></p>
    </section>`,
  })
}

/** The 404 page; it is the same for every path. */
export function renderNotFoundPage(): string {
  return page
}
