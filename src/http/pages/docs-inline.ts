// The descriptions of the OpenAPI document as HTML: paragraphs, and code between backticks.
import { problemTypes } from '../problem.ts'
import { html, type Html, renderCode } from './html.ts'

/** Renders one paragraph. The name of a problem type links to its page. */
export function inline(description: string): Html[] {
  return renderCode(description, (segment) => {
    const code = html`<code>${segment}</code>`
    return Object.hasOwn(problemTypes, segment)
      ? html`<a href="/problems/${segment}">${code}</a>`
      : code
  })
}

/** Renders paragraphs, which an empty line separates. */
export function paragraphs(description: string): Html[] {
  return description.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}
