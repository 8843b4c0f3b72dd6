// A shell parses the commands of the reference as intended.
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { createBodySchema } from '../create/create-request.ts'
import { createOpenApi } from '../create/openapi.ts'
import { renderCurl } from './curl.ts'

const document = createOpenApi({
  baseUrl: `https://it's.example`,
  schema: createBodySchema(new Set()),
})

/** The arguments of the command as a shell parses them. */
function argumentsOf(path: string, method: 'get' | 'head' | 'post'): string[] {
  const operation = document.paths[path]?.[method]
  if (operation === undefined) throw new Error(`no operation ${method} ${path}`)
  const command = renderCurl(document, { method: method.toUpperCase(), path, operation })
  const script = `curl() { printf '%s\\n' "$@"; }\n${command}`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n')
}

test('the body of a create request is the JSON of the example', () => {
  const [, url, flag, type, data, body] = argumentsOf('/v1/urls', 'post')
  expect([url, flag, type, data]).toEqual([
    `https://it's.example/v1/urls`,
    '-H',
    'Content-Type: application/json',
    '-d',
  ])
  expect(JSON.parse(body ?? '')).toHaveProperty('long_url')
})

test('the path has its example, and HEAD requests use -I', () => {
  expect(argumentsOf('/{code}', 'head')).toEqual(['-I', `https://it's.example/spring-26`])
})
