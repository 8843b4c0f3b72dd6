// The page of one problem type: its meaning and what to do.
import type { ProblemType } from '../problem.ts'
import { html } from './html.ts'
import { renderLayout } from './layout.ts'

/** Renders the page; `uri` is the `type` of the problem documents. */
export function renderProblemPage(name: string, uri: string, type: ProblemType): string {
  return renderLayout({
    title: `${name} – Curtail`,
    summary: { description: type.meaning, url: uri },
    main: html`<article class="card lone">
      <p class="eyebrow">Problem type · HTTP ${type.status}</p>
      <h1>${type.title}</h1>
      <p>${type.meaning}</p>
      <dl class="facts">
        <div>
          <dt>Name</dt>
          <dd><code>${name}</code></dd>
        </div>
        <div>
          <dt>Status</dt>
          <dd><code>${type.status}</code></dd>
        </div>
        <div>
          <dt>Type</dt>
          <dd><code>${uri}</code></dd>
        </div>
      </dl>
      <p>
        A document of this type has a <code>detail</code>, which describes the error, and a
        <code>request_id</code>, which identifies the request in the logs. Include the
        <code>request_id</code> when you report a problem.
      </p>
      <p><a href="/docs#problems">All problem types</a></p>
    </article>`,
  })
}
