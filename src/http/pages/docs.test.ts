// The reference page has everything that the document has.
import { expect, test } from '@jest/globals'
import { noClientKeys } from '../../create/client-keys.ts'
import { createBodySchema } from '../create/create-request.ts'
import { createOpenApi } from '../create/openapi.ts'
import { problemTypes } from '../problem.ts'
import { renderDocsPage } from './docs.ts'

const baseUrl = 'https://curtail.example'
const schema = createBodySchema(new Set())
const document = createOpenApi({ baseUrl, schema, keys: noClientKeys })
const page = renderDocsPage(document)

test('two operations are open; every operation has its responses, curl and a form', () => {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
  expect(page.match(/<section class="card" id="[^"]+"/g)).toEqual([
    '<section class="card" id="createLink"',
    '<section class="card" id="resolveLink"',
  ])
  const cards = page.split(/<(?:section|details) class="card"/)
  const sections = cards.slice(1, -2) // the last two are the headers and the problem types
  expect(sections).toHaveLength(operations.length)
  for (const [at, { path, method, operation }] of operations.entries()) {
    const section = sections[at]
    expect(section).toContain(`>${method.toUpperCase()}</span>`)
    expect(section).toContain(`<code>${path}</code>`)
    expect(section).toMatch(new RegExp(`curl -[iI] &#39;${baseUrl}/`))
    expect(section).toContain(`data-method="${method.toUpperCase()}" data-path="${path}"`)
    for (const status of Object.keys(operation.responses)) {
      expect(section).toContain(`<dt>${status === 'default' ? 'other' : status}</dt>`)
    }
  }
})

test('a form has the members of the example body, and a field for each parameter', () => {
  const example = document.paths['/v1/urls']?.post?.requestBody?.content['application/json']
  const body = /<textarea[^>]*>\n([^<]*)</.exec(page)?.[1]?.replaceAll('&quot;', '"') ?? ''
  expect(JSON.parse(body)).toEqual(example?.example)
  for (const name of ['header:Idempotency-Key', 'header:X-API-Key', 'path:code']) {
    expect(page).toContain(` name="${name}"`)
  }
})

test('the fields have the documented patterns, which are valid in HTML', () => {
  const { parameters = [] } = document.paths['/{code}.svg']?.get ?? {}
  const [code = ''] = parameters.map(({ schema: { pattern } }) => String(pattern))
  expect(page).toContain(`name="path:code" value="spring-26" pattern="${code}"`)
  const patterns = [...page.matchAll(/ pattern="([^"]+)"/g)].map(([, pattern]) => String(pattern))
  expect(patterns).toHaveLength(4)
  for (const pattern of patterns) expect(() => new RegExp(pattern, 'v')).not.toThrow()
  for (const segment of ['.', '..', 'a/b']) expect(segment).not.toMatch(new RegExp(code, 'v'))
})

test('the page has every member, every header once, and every problem type', () => {
  const schemas = Object.values(document.components.schemas)
  const members = schemas.flatMap(({ properties }) => Object.keys(properties ?? {}))
  expect(members).toContain('custom_alias')
  expect(members).toContain('request_id')
  for (const name of members) expect(page).toContain(`<code>${name}</code>`)
  for (const name of Object.keys(document.components.headers)) {
    expect(page.split(`id="header-${name}"`)).toHaveLength(2)
  }
  for (const name of Object.keys(problemTypes)) {
    expect(page).toContain(`href="/problems/${name}"`)
  }
})

test('the page and its curl command contain the API key if the service requires one', () => {
  const requiredKey = /name="header:X-API-Key" type="password" autocomplete="[a-z-]+"\s+required/
  const required = renderDocsPage(createOpenApi({ baseUrl, schema, keys: { isRequired: true } }))
  expect(required).toContain('This service requires an API key in the header')
  expect(required).toContain('-H &quot;X-API-Key: $API_KEY&quot;')
  expect(required).toMatch(requiredKey)
  expect(page).toContain('is optional')
  expect(page).not.toContain('$API_KEY')
  expect(page).not.toMatch(requiredKey)
})

test('every link within the page has a target', () => {
  for (const [, id] of page.matchAll(/href="#([^"]+)"/g)) {
    expect(page).toContain(`id="${String(id)}"`)
  }
})

test('a hostile document is escaped', () => {
  const hostile = { ...document, servers: [{ url: `https://x/'"><script>` }] }
  expect(renderDocsPage(hostile)).not.toContain('<script>')
})
