// The commands of the reference are what a shell takes.
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { createBodySchema } from '../create/create-request.ts'
import { createOpenApi } from '../create/openapi.ts'
import { renderCurl } from './curl.ts'

const document = createOpenApi({
  baseUrl: `https://it's.example`,
  schema: createBodySchema(new Set()),
})

/** The words of the command as a shell reads them. */
function wordsOf(path: string, method: 'get' | 'head' | 'post'): string[] {
  const operation = document.paths[path]?.[method]
  if (operation === undefined) throw new Error(`there is no ${method} ${path}`)
  const command = renderCurl(document, { method: method.toUpperCase(), path, operation })
  const script = `curl() { printf '%s\\n' "$@"; }\n${command}`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n')
}

test('the body of a create request arrives as the JSON of the example', () => {
  const [, url, flag, type, data, body] = wordsOf('/v1/urls', 'post')
  expect([url, flag, type, data]).toEqual([
    `https://it's.example/v1/urls`,
    '-H',
    'Content-Type: application/json',
    '-d',
  ])
  expect(JSON.parse(body ?? '')).toHaveProperty('long_url')
})

test('the form is encoded by curl, the path is filled in, and HEAD asks for headers', () => {
  expect(wordsOf('/', 'post')).toContain('--data-urlencode')
  expect(wordsOf('/{code}', 'head')).toEqual(['-I', `https://it's.example/spring-26`])
})
