// A shell parses the commands of the reference as intended.
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { noClientKeys } from '../../create/client-keys.ts'
import { createBodySchema } from '../create/create-request.ts'
import { createOpenApi } from '../create/openapi.ts'
import { renderCurl } from './curl.ts'

const deps = { baseUrl: `https://it's.example`, schema: createBodySchema(new Set()) }
const document = createOpenApi({ ...deps, keys: noClientKeys })
const keyed = createOpenApi({ ...deps, keys: { isRequired: true } })

/** The arguments of the command as a shell parses them. */
function argumentsOf(path: string, method: 'get' | 'head' | 'post', from = document): string[] {
  const operation = from.paths[path]?.[method]
  if (operation === undefined) throw new Error(`no operation ${method} ${path}`)
  const command = renderCurl(from, { method: method.toUpperCase(), path, operation })
  const script = `API_KEY='a "key"'; curl() { printf '%s\\n' "$@"; }\n${command}`
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

test('a required API key is the value of API_KEY', () => {
  const [, url, flag, header] = argumentsOf('/v1/urls', 'post', keyed)
  expect([url, flag, header]).toEqual([`https://it's.example/v1/urls`, '-H', 'X-API-Key: a "key"'])
})
