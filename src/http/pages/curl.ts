// An operation of the OpenAPI document as a shell command. It omits optional headers: readers would
// all copy the same Idempotency-Key.
import type { OpenApiDocument } from '../create/openapi.ts'
import type { PlacedOperation } from '../create/openapi-document.ts'

/** The command, with one line per option. */
export function renderCurl(document: OpenApiDocument, placed: PlacedOperation): string {
  const { method, path, operation } = placed
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  let filledPath = path
  for (const parameter of operation.parameters ?? []) {
    filledPath = filledPath.replace(`{${parameter.name}}`, parameter.example)
  }
  const url = quote(`${document.servers[0]?.url ?? ''}${filledPath}`)
  const lines = [`curl ${method === 'HEAD' ? '-I' : '-i'} ${url}`]
  if (type !== undefined) {
    lines.push(`-H ${quote(`Content-Type: ${type}`)}`)
    lines.push(`-d ${quote(JSON.stringify(media?.example))}`)
  }
  return lines.join(' \\\n  ')
}

/** Quotes one argument for a POSIX shell. */
function quote(argument: string): string {
  return `'${argument.replaceAll("'", "'\\''")}'`
}
