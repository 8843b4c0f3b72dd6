// An operation of the OpenAPI document as a command for a shell. It leaves optional headers out: an
// Idempotency-Key that everybody copies from here would be everybody's.
import type { OpenApiDocument, PlacedOperation } from '../create/openapi-document.ts'

/** The command, on as many lines as it has parts. */
export function renderCurl(document: OpenApiDocument, placed: PlacedOperation): string {
  const { method, path, operation } = placed
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  let filled = path
  for (const parameter of operation.parameters ?? []) {
    filled = filled.replace(`{${parameter.name}}`, parameter.example)
  }
  const url = quote(`${document.servers[0]?.url ?? ''}${filled}`)
  const lines = [`curl ${method === 'HEAD' ? '-I' : '-i'} ${url}`]
  if (type === 'application/json') {
    lines.push(`-H ${quote(`Content-Type: ${type}`)}`)
    lines.push(`-d ${quote(JSON.stringify(media?.example))}`)
  } else if (type !== undefined) {
    for (const [name, value] of Object.entries(Object(media?.example) as Record<string, unknown>)) {
      lines.push(`--data-urlencode ${quote(`${name}=${String(value)}`)}`)
    }
  }
  return lines.join(' \\\n  ')
}

/** One word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
