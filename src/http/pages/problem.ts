// The page of one problem type: its meaning and what to do.
import type { ProblemName } from '../problem.ts'
import { html, renderCode } from './html.ts'
import { renderLayout } from './layout.ts'
import type { Strings } from './strings/en.ts'

/** A problem type: `uri` is the `type` of the problem documents. */
interface ShownType {
  readonly name: ProblemName
  readonly uri: string
  readonly status: number
}

/** Renders the page. */
export function renderProblemPage({ name, uri, status }: ShownType, strings: Strings): string {
  const { title, meaning } = strings.problems[name]
  const labels = strings.problem
  const facts = [
    [labels.name, name],
    [labels.status, status],
    [labels.type, uri],
  ] as const
  return renderLayout({
    title: `${name} – Curtail`,
    strings,
    summary: { description: meaning, url: uri },
    main: html`<article class="card lone">
      <p class="eyebrow">${labels.eyebrow} · HTTP ${status}</p>
      <h1>${title}</h1>
      <p>${meaning}</p>
      <dl class="facts">
        ${facts.map(
          ([label, value]) =>
            html`<div>
              <dt>${label}</dt>
              <dd><code>${value}</code></dd>
            </div>`,
        )}
      </dl>
      <p>${renderCode(labels.document)}</p>
      <p><a href="/docs#problems">${labels.all}</a></p>
    </article>`,
  })
}
