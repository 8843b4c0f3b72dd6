// The API reference, rendered only from the OpenAPI document and the table of problem types. The
// sections after the first two operations are closed until the reader opens them.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { PlacedOperation } from '../create/openapi-document.ts'
import { sharedHeaders } from '../create/openapi-paths.ts'
import { problemTypes } from '../problem.ts'
import { paragraphs } from './docs-inline.ts'
import { renderOperation, renderRoute } from './docs-operation.ts'
import { html, type Html } from './html.ts'
import { renderLayout } from './layout.ts'
import { renderMembers } from './schema-members.ts'

/** The number of operations that are open: most clients need no other. */
const OPEN_OPERATIONS = 2

/** Renders the page. */
export function renderDocsPage(document: OpenApiDocument): string {
  const placed = operationsOf(document)
  const baseUrl = document.servers[0]?.url ?? ''
  return renderLayout({
    title: `API reference – ${document.info.title}`,
    style: 'docs.css',
    scripts: ['docs.js'],
    summary: {
      description: 'How programs create and resolve short links.',
      url: `${baseUrl}/docs`,
    },
    main: html`<div class="lead">
        <h1>API reference</h1>
        ${paragraphs(document.info.description)}
        <p>
          The base URL is <code>${baseUrl}</code>. Programs read the same reference from
          <a href="/openapi.json">openapi.json</a> (OpenAPI ${document.openapi}).
        </p>
      </div>
      ${renderContents(placed)}
      ${placed.map((operation, at) =>
        at < OPEN_OPERATIONS
          ? renderOpen(document, operation)
          : renderClosed(operation.operation.operationId, {
              title: html`${operation.operation.summary} ${renderRoute(operation)}`,
              content: renderOperation(document, operation),
            }),
      )}
      ${renderClosed('headers', {
        title: html`Headers of responses`,
        content: renderHeaders(document),
      })}
      ${renderClosed('problems', {
        title: html`Problem types`,
        content: renderProblemTypes(document),
      })}
      <p class="visually-hidden" id="status" role="status"></p>`,
  })
}

function operationsOf({ paths }: OpenApiDocument): PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      return { method: method.toUpperCase(), path, operation }
    }),
  )
}

function renderContents(placed: readonly PlacedOperation[]): Html {
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      ${placed.map(
        ({ method, path, operation }) =>
          html`<li><a href="#${operation.operationId}">${method} ${path}</a></li>`,
      )}
      <li><a href="#headers">Headers</a></li>
      <li><a href="#problems">Problem types</a></li>
    </ul>
  </nav>`
}

function renderOpen(document: OpenApiDocument, placed: PlacedOperation): Html {
  const { operationId: id, summary } = placed.operation
  return html`<section class="card" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${summary} ${renderRoute(placed)}</h2>
    ${renderOperation(document, placed)}
  </section>`
}

/** The id is inside: a browser opens the section when the reader goes to the id. */
function renderClosed(id: string, { title, content }: { title: Html; content: Html }): Html {
  return html`<details class="card">
    <summary><h2>${title}</h2></summary>
    <div id="${id}">${content}</div>
  </details>`
}

function renderHeaders({ components }: OpenApiDocument): Html {
  const names = Object.keys(components.headers)
  const own = names.filter((name) => !sharedHeaders.includes(name))
  const list = (members: readonly string[]) =>
    html`<dl class="members">
      ${members.map(
        (name) =>
          html`<div id="header-${name}">
            <dt><code>${name}</code></dt>
            <dd>${components.headers[name]?.description}</dd>
          </div>`,
      )}
    </dl>`
  return html`<p>
      Every response has the first two headers. It has the X-RateLimit headers if a rate limit
      counted the request and the limiter was available. A QR code possibly has them only with 429.
    </p>
    ${list(sharedHeaders)}
    <p>The operations list their other headers:</p>
    ${list(own)}`
}

function renderProblemTypes(document: OpenApiDocument): Html {
  return html`<h3>Members of a problem document</h3>
    ${renderMembers(document, { $ref: '#/components/schemas/Problem' })}
    <h3>Types</h3>
    <dl class="responses">
      ${Object.entries(problemTypes).map(
        ([name, type]) =>
          html`<div>
            <dt>${type.status}</dt>
            <dd>
              <a href="/problems/${name}"><code>${name}</code></a> ${type.meaning}
            </dd>
          </div>`,
      )}
    </dl>`
}
