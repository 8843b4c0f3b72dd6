// The members of a JSON Schema object as an HTML list: name, type, whether optional, description.
// Supports only the keywords that our own schemas use.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { JsonSchema } from '../create/openapi-document.ts'
import { inline } from './docs-inline.ts'
import { html, type Html } from './html.ts'

/** Renders the list; `undefined` for a schema without members. */
export function renderMembers(document: OpenApiDocument, schema: JsonSchema): Html | undefined {
  const { properties, required } = resolve(document, schema)
  if (!isSchema(properties)) return undefined
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name)
  return html`<dl class="members">
    ${Object.entries(properties).map(([name, member]) => {
      if (!isSchema(member)) return html``
      const { description, examples } = member
      const example: unknown = Array.isArray(examples) ? examples[0] : undefined
      return html`<div>
        <dt>
          <code>${name}</code>
          <span class="kind">${typeOf(member)}${!isRequired(name) && ', optional'}</span>
        </dt>
        <dd>
          ${typeof description === 'string' && inline(description)}
          ${example !== undefined && html`Example: <code>${JSON.stringify(example)}</code>`}
        </dd>
      </div>`
    })}
  </dl>`
}

function resolve({ components }: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const { $ref } = schema
  if (typeof $ref !== 'string') return schema
  return components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}
}

function typeOf({ type, anyOf, minimum, maximum }: JsonSchema): string {
  if (Array.isArray(anyOf)) return anyOf.filter(isSchema).map(typeOf).join(' or ')
  if (Array.isArray(type)) return type.map(String).join(' or ')
  const bounds = typeof minimum === 'number' && typeof maximum === 'number'
  return `${String(type)}${bounds ? ` from ${minimum} to ${maximum}` : ''}`
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
