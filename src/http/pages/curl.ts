// An operation of the OpenAPI document as a shell command. It omits optional headers: readers would
// all copy the same Idempotency-Key.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { PlacedOperation } from '../create/openapi-document.ts'
import { apiKeyOf, bodyOf } from './operation-input.ts'

/** The command, with one line per option. It reads a required API key from the variable API_KEY. */
export function renderCurl(document: OpenApiDocument, placed: PlacedOperation): string {
  const { method, path, operation } = placed
  let filledPath = path
  for (const parameter of operation.parameters ?? []) {
    filledPath = filledPath.replace(`{${parameter.name}}`, parameter.example)
  }
  const url = quote(`${document.servers[0]?.url ?? ''}${filledPath}`)
  const lines = [`curl ${method === 'HEAD' ? '-I' : '-i'} ${url}`]
  const key = apiKeyOf(document, operation)
  if (key?.isRequired === true) lines.push(`-H "${key.name}: $API_KEY"`)
  const body = bodyOf(operation)
  if (body !== undefined) {
    lines.push(`-H ${quote(`Content-Type: ${body.type}`)}`)
    lines.push(`-d ${quote(JSON.stringify(body.example))}`)
  }
  return lines.join(' \\\n  ')
}

/** Quotes one argument for a POSIX shell. */
function quote(argument: string): string {
  return `'${argument.replaceAll("'", "'\\''")}'`
}
