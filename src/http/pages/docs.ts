// The API reference, rendered only from the OpenAPI document and the table of problem types.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { Operation, PlacedOperation, ResponseObject } from '../create/openapi-document.ts'
import { problemTypes } from '../problem.ts'
import { renderCurl } from './curl.ts'
import { html, type Html } from './html.ts'
import { renderLayout } from './layout.ts'
import { renderMembers } from './schema-members.ts'

/** Renders the page. */
export function renderDocsPage(document: OpenApiDocument): string {
  const placed = operationsOf(document)
  return renderLayout({
    title: `API reference – ${document.info.title}`,
    style: 'docs.css',
    summary: {
      description: 'How programs create and resolve short links.',
      url: `${document.servers[0]?.url ?? ''}/docs`,
    },
    main: html`<div class="lead">
        <h1>API reference</h1>
        ${paragraphs(document.info.description)}
        <p>
          Everything below is at <code>${document.servers[0]?.url}</code>. Programs read the same
          from <a href="/openapi.json">openapi.json</a>.
        </p>
      </div>
      <div class="reference">
        ${renderContents(placed)}
        <div class="sections">
          <h2 class="section" id="links">Links</h2>
          ${placed.map((operation) => renderOperation(document, operation))}
          ${renderHeaders(document)} ${renderProblemTypes()}
        </div>
      </div>`,
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
  const entry = ({ method, path, operation }: PlacedOperation) =>
    html`<li>
      <a href="#${operation.operationId}"><b>${method}</b> ${path}</a>
    </li>`
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      <li>
        <a href="#links">Links</a>
        <ul>
          ${placed.map(entry)}
        </ul>
      </li>
      <li><a href="#headers">Headers</a></li>
      <li><a href="#problems">Problem types</a></li>
    </ul>
  </nav>`
}

function renderOperation(document: OpenApiDocument, placed: PlacedOperation): Html {
  const { method, path, operation } = placed
  const id = operation.operationId
  return html`<section class="card operation" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title">${operation.summary}</h3>
    <p class="route">
      <span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code>
    </p>
    <p>${inline(operation.description)}</p>
    ${renderParameters(operation)} ${renderRequestBody(document, operation)}
    <h4>Try it</h4>
    ${block('Example request', renderCurl(document, placed))}
    <h4>Responses</h4>
    <dl class="responses">
      ${Object.entries(operation.responses).map(([status, response]) => {
        return renderResponse(document, status, response)
      })}
    </dl>
  </section>`
}

function renderParameters({ parameters }: Operation): Html | undefined {
  if (parameters === undefined) return undefined
  return html`<h4>Parameters</h4>
    <dl class="members">
      ${parameters.map(
        (parameter) =>
          html`<div>
            <dt>
              <code>${parameter.name}</code>
              <span class="kind">${parameter.in}${parameter.required ? ', required' : ''}</span>
            </dt>
            <dd>${parameter.description} Such as <code>${parameter.example}</code>.</dd>
          </div>`,
      )}
    </dl>`
}

function renderRequestBody(
  document: OpenApiDocument,
  { requestBody }: Operation,
): Html | undefined {
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (type === undefined || media === undefined) return undefined
  return html`<h4>Body <span class="kind">${type}</span></h4>
    ${renderMembers(document, media.schema)}`
}

function renderResponse(document: OpenApiDocument, status: string, response: ResponseObject): Html {
  const names = Object.keys(response.headers ?? {})
  const example = Object.values(response.content ?? {})[0]?.example
  const json = response.content?.['application/json']
  return html`<div>
    <dt>${status === 'default' ? 'else' : status}</dt>
    <dd>
      <p>${inline(response.description)}</p>
      ${
        names.length > 0 &&
        html`<p class="kind">
          ${names.map((name, at) => {
            return html`${at > 0 && ' · '}<a href="#header-${name}">${name}</a>`
          })}
        </p>`
      }
      ${json && renderMembers(document, json.schema)}
      ${example !== undefined && block('Example response', JSON.stringify(example, undefined, 2))}
    </dd>
  </div>`
}

function renderHeaders({ components }: OpenApiDocument): Html {
  return html`<h2 class="section" id="headers">Headers of responses</h2>
    <div class="card">
      <dl class="members">
        ${Object.entries(components.headers).map(
          ([name, { description }]) =>
            html`<div id="header-${name}">
              <dt><code>${name}</code></dt>
              <dd>${description}</dd>
            </div>`,
        )}
      </dl>
    </div>`
}

function renderProblemTypes(): Html {
  return html`<h2 class="section" id="problems">Problem types</h2>
    <div class="card">
      <dl class="responses">
        ${Object.entries(problemTypes).map(
          ([name, type]) =>
            html`<div>
              <dt>${type.status}</dt>
              <dd>
                <p>
                  <a href="/problems/${name}"><code>${name}</code></a>
                </p>
                <p>${type.meaning}</p>
              </dd>
            </div>`,
        )}
      </dl>
    </div>`
}

function block(label: string, text: string): Html {
  return html`<pre tabindex="0" role="region" aria-label="${label}"><code>${text}</code></pre>`
}

function paragraphs(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}

/** Renders text between backticks as code. */
function inline(text: string): Html[] {
  return text
    .split('`')
    .map((segment, at) => (at % 2 === 1 ? html`<code>${segment}</code>` : html`${segment}`))
}
