// The form of the API reference that sends a request to this server. Its fields are the API key,
// the parameters and the body of the operation. The key is the first field: a browser could take a
// field before a password for the name of an account. docs.js shows the form and sends the request.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { Parameter, PlacedOperation } from '../create/openapi-document.ts'
import { apiKeyOf, bodyOf } from './operation-input.ts'
import { html, type Html } from './html.ts'

/** Renders the form. It is hidden without JavaScript, which it requires. */
export function renderTryForm(document: OpenApiDocument, placed: PlacedOperation): Html {
  const { method, path, operation } = placed
  const id = (name: string) => `${operation.operationId}-${name}`
  const key = apiKeyOf(document, operation)
  const body = bodyOf(operation)
  return html`<form class="try" data-method="${method}" data-path="${path}" hidden>
    <h3>Try it on this server</h3>
    ${
      key &&
      renderField(key.name, {
        id: id(key.name),
        isRequired: key.isRequired,
        attributes: html` name="header:${key.name}" type="password" autocomplete="new-password"`,
      })
    }
    ${(operation.parameters ?? []).map((parameter) =>
      renderField(parameter.name, {
        id: id(parameter.name),
        isRequired: parameter.required,
        attributes: renderAttributes(parameter),
      }),
    )}
    ${
      body &&
      html`<div class="field">
        <label for="${id('body')}">Body <span class="kind">${body.type}</span></label>
        <textarea
          id="${id('body')}"
          name="body"
          data-type="${body.type}"
          rows="6"
          spellcheck="false"
          autocomplete="off"
        >
${JSON.stringify(body.example, undefined, 2)}</textarea>
      </div>`
    }
    <button type="submit">Send</button>
    <p class="failure" role="alert"></p>
    <div class="exchange" hidden>
      ${renderOutput('Request', { name: 'request', summary: operation.summary })}
      ${renderOutput('Response', { name: 'response', summary: operation.summary })}
    </div>
  </form>`
}

/** One header or path parameter. */
interface Field {
  readonly id: string
  readonly isRequired: boolean
  readonly attributes: Html
}

function renderAttributes({ name, in: place, example, schema }: Parameter): Html {
  const value = place === 'path' && example
  const pattern = String(schema['pattern'])
  const hint = `Allowed: ${pattern}` // browsers show it if the value does not match
  return html` name="${place}:${name}" value="${value}" pattern="${pattern}" title="${hint}"
  autocomplete="off"`
}

function renderField(name: string, { id, isRequired, attributes }: Field): Html {
  return html`<div class="field">
    <label for="${id}">${name} ${!isRequired && html`<span class="kind">optional</span>`}</label>
    <input
      id="${id}"
      ${attributes}
      ${isRequired && 'required'}
      autocapitalize="off"
      spellcheck="false"
    />
  </div>`
}

function renderOutput(title: string, { name, summary }: { name: string; summary: string }): Html {
  const label = `${title}: ${summary}`
  return html`<h4>${title}</h4>
    <pre tabindex="0" role="region" aria-label="${label}"><code class="${name}"></code></pre>`
}
