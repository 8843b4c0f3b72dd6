// The document is OpenAPI 3.1, covers the API, and its examples match its schemas.
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { servedSegments } from '../../links/reserved.ts'
import { problemTypes } from '../problem.ts'
import { noClientKeys } from '../../create/client-keys.ts'
import { createBodySchema } from './create-request.ts'
import { createOpenApi, problemSchema } from './openapi.ts'

const baseUrl = 'https://curtail.example'
const schema = createBodySchema(new Set())
const document = createOpenApi({ baseUrl, schema, keys: noClientKeys })
const keyed = createOpenApi({ baseUrl, schema, keys: { isRequired: true } })

test.each([document, keyed])('the document is valid OpenAPI 3.1', async (one) => {
  const copy = JSON.parse(JSON.stringify(one)) as Record<string, unknown>
  const { valid, errors } = await new Validator().validate(copy)
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
})

test('the server of the document is the base URL', () => {
  expect(document.servers).toEqual([{ url: baseUrl }])
})

test('the version of the document is that of the package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  expect(document.info.version).toBe(version)
})

test('every reference resolves', () => {
  const json = JSON.stringify(document)
  const components = document.components as unknown as Record<string, Record<string, unknown>>
  for (const [, kind, name] of json.matchAll(/"#\/components\/([a-z]+)\/([^"]+)"/g)) {
    expect(components[String(kind)]).toHaveProperty([String(name)])
  }
})

/** The first segments of the paths of pages and files. */
const pages = [
  '.well-known',
  'abuse',
  'assets',
  'docs',
  'favicon.ico',
  'openapi.json',
  'problems',
  'robots.txt',
]

test('the document describes every public path but the pages and files', () => {
  expect(Object.keys(document.paths)).toEqual(['/v1/urls', '/{code}', '/{code}.svg'])
  const first = [...servedSegments].filter((segment) => !pages.includes(segment))
  expect(first).toEqual(['v1'])
})

test('the create operation documents every status that it can return', () => {
  const own = [201, 400, 409, 413, 415, 422, 429, 500, 503].map(String)
  const { responses = {} } = document.paths['/v1/urls']?.post ?? {}
  expect(Object.keys(responses)).toEqual([...own, 'default'])
  expect(responses['400']?.description).toMatch(/`malformed-json`.*`bad-request`/)
})

test('an API key is optional, or required with 401 if the service is configured so', () => {
  const { security, responses } = document.paths['/v1/urls']?.post ?? {}
  expect(security).toEqual([{}, { ApiKey: [] }])
  expect(responses).not.toHaveProperty('401')
  expect(document.components.securitySchemes.ApiKey).toMatchObject({
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
  })
  const required = keyed.paths['/v1/urls']?.post
  expect(required?.security).toEqual([{ ApiKey: [] }])
  expect(required?.responses['401']).toMatchObject({
    description: '`api-key-required`: a create requires an API key.',
    headers: { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } },
  })
})

test('a redirect does not document the problems of a create', () => {
  const { description } = document.paths['/{code}']?.get?.responses['503'] ?? {}
  expect(description).toContain('`store-unavailable`')
  expect(description).not.toContain('`pool-empty`')
})

test('a response to HEAD has no body', () => {
  for (const response of Object.values(document.paths['/{code}']?.head?.responses ?? {})) {
    expect(response).not.toHaveProperty('content')
  }
})

test('the request schema accepts exactly what the service accepts', () => {
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  const validate = ajv.compile(document.components.schemas['CreateLink'] ?? false)
  const longUrl = 'https://example.com/'
  expect(validate({ long_url: longUrl, custom_alias: 'a_-9', ttl_days: 3650 })).toBe(true)
  expect(validate({ long_url: longUrl, custom_alias: null, ttl_days: null })).toBe(true)
  for (const wrong of [
    {},
    { long_url: 1 },
    { long_url: longUrl, ttl_days: 0 },
    { long_url: longUrl, ttl_days: 1.5 },
    { long_url: longUrl, custom_alias: 'a/b' },
    { long_url: longUrl, more: 1 },
  ]) {
    expect(validate(wrong)).toBe(false)
  }
})

test('examples match their schemas', () => {
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  ajv.addSchema(document, 'doc')
  let examples = 0
  for (const { post } of Object.values(document.paths)) {
    const bodies = [post?.requestBody, ...Object.values(post?.responses ?? {})]
    for (const media of bodies.flatMap((body) => Object.values(body?.content ?? {}))) {
      if (media.example === undefined) continue
      const json = JSON.stringify(media.schema).replaceAll('"#/', '"doc#/')
      const validate = ajv.compile(JSON.parse(json) as Record<string, unknown>)
      expect([validate(media.example), validate.errors]).toEqual([true, null])
      examples++
    }
  }
  expect(examples).toBe(2)
})

test('a problem document of each type matches the schema; one with another member does not', () => {
  for (const [name, { status, title }] of Object.entries(problemTypes)) {
    const type = `${baseUrl}/problems/${name}`
    const problem = { type, title, status, detail: 'This', request_id: 'r-1' }
    expect(problemSchema.safeParse(problem).success).toBe(true)
    expect(problemSchema.safeParse({ ...problem, stack: 'at x' }).success).toBe(false)
  }
})
