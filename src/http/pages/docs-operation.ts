// One operation in the API reference: what a client sends and receives, and how to try it.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { Operation, PlacedOperation, ResponseObject } from '../create/openapi-document.ts'
import { sharedHeaders } from '../create/openapi-paths.ts'
import { renderCurl } from './curl.ts'
import { inline, paragraphs } from './docs-inline.ts'
import { renderTryForm } from './docs-try.ts'
import { html, type Html } from './html.ts'
import { apiKeyOf, bodyOf } from './operation-input.ts'
import { renderMembers } from './schema-members.ts'

/** Renders the method and the path. */
export function renderRoute({ method, path }: PlacedOperation): Html {
  return html`<span class="route"
    ><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></span
  >`
}

/**
 * Renders the operation without its title: the reference in the left column, the commands in the
 * right one.
 */
export function renderOperation(document: OpenApiDocument, placed: PlacedOperation): Html {
  const { operation } = placed
  return html`<div class="columns">
    <div>
      ${paragraphs(operation.description)} ${renderRequest(document, operation)}
      ${renderResponses(document, operation)}
    </div>
    <div>
      ${renderCommand(renderCurl(document, placed))} ${renderExample(operation)}
      ${renderTryForm(document, placed)}
    </div>
  </div>`
}

function renderRequest(document: OpenApiDocument, operation: Operation): Html {
  const key = apiKeyOf(document, operation)
  const body = bodyOf(operation)
  const keyParameter = key && { ...key, required: key.isRequired, example: undefined }
  const parameters = [...(operation.parameters ?? []), ...(keyParameter ? [keyParameter] : [])]
  return html`<h3>Request</h3>
    <dl class="members">
      ${parameters.map(
        ({ name, in: place, required, description, example }) =>
          html`<div>
            <dt>
              <code>${name}</code>
              <span class="kind">${place}${!required && ', optional'}</span>
            </dt>
            <dd>${description} ${place === 'path' && html`Example: <code>${example}</code>`}</dd>
          </div>`,
      )}
    </dl>
    ${body && renderMembers(document, body.schema)}`
}

/** The problems are closed until the reader opens them. */
function renderResponses(document: OpenApiDocument, { responses }: Operation): Html {
  const all = Object.entries(responses)
  const problems = all.filter(([status]) => status === 'default' || Number(status) >= 400)
  const list = (members: typeof all) =>
    html`<dl class="responses">
      ${members.map(([status, response]) => renderResponse(document, status, response))}
    </dl>`
  return html`<h3>Responses</h3>
    ${list(all.filter((member) => !problems.includes(member)))}
    <details class="errors">
      <summary>Errors: ${problems.map(([status]) => labelOf(status)).join(', ')}</summary>
      ${list(problems)}
    </details>`
}

function renderResponse(document: OpenApiDocument, status: string, response: ResponseObject): Html {
  const own = Object.keys(response.headers ?? {}).filter((name) => !sharedHeaders.includes(name))
  const listed = own.filter((name) => !response.description.includes(`\`${name}\``))
  const json = response.content?.['application/json']
  return html`<div>
    <dt>${labelOf(status)}</dt>
    <dd>
      ${inline(response.description)}
      ${listed.map((name, at) => {
        return html`${at > 0 && ' · '}<a class="kind" href="#header-${name}">${name}</a>`
      })}
      ${json && renderMembers(document, json.schema)}
    </dd>
  </div>`
}

function labelOf(status: string): string {
  return status === 'default' ? 'other' : status
}

function renderCommand(command: string): Html {
  return html`<div class="command">
    <div class="bar">
      <h3>curl</h3>
      <button class="copy" type="button" hidden>Copy</button>
    </div>
    <pre><code>${command}</code></pre>
  </div>`
}

/** The example of the first response that has one. */
function renderExample({ responses }: Operation): Html | undefined {
  const contents = Object.values(responses).flatMap(({ content }) => Object.values(content ?? {}))
  const example = contents.find((media) => media.example !== undefined)?.example
  if (example === undefined) return undefined
  return html`<h3>Example response</h3>
    <pre><code>${JSON.stringify(example, undefined, 2)}</code></pre>`
}
