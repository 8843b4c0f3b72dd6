// The reference page has everything that the document has.
import { expect, test } from '@jest/globals'
import { createBodySchema } from '../create/create-request.ts'
import { createOpenApi } from '../create/openapi.ts'
import { problemTypes } from '../problem.ts'
import { renderDocsPage } from './docs.ts'

const baseUrl = 'https://curtail.example'
const document = createOpenApi({ baseUrl, schema: createBodySchema(new Set()) })
const page = renderDocsPage(document)

test('every operation has a section with its method, path, responses and a curl command', () => {
  const sections = page.split('<section class="card operation"').slice(1)
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
  expect(sections).toHaveLength(operations.length)
  for (const { path, method, operation } of operations) {
    const section = sections.find((section) => section.includes(`id="${operation.operationId}"`))
    expect(section).toContain(`>${method.toUpperCase()}</span>`)
    expect(section).toContain(`<code>${path}</code>`)
    expect(section).toMatch(new RegExp(`curl -[iI] &#39;${baseUrl}/`))
    for (const status of Object.keys(operation.responses)) {
      expect(section).toContain(`<dt>${status === 'default' ? 'else' : status}</dt>`)
    }
  }
})

test('the page has every request member, every header and every problem type', () => {
  const members = ['long_url', 'custom_alias', 'ttl_days', 'short_url', 'expires_at']
  for (const name of [...members, ...Object.keys(document.components.headers)]) {
    expect(page).toContain(`<code>${name}</code>`)
  }
  for (const name of Object.keys(problemTypes)) {
    expect(page).toContain(`href="/problems/${name}"`)
  }
})

test('every link within the page has a target', () => {
  for (const [, id] of page.matchAll(/href="#([^"]+)"/g)) {
    expect(page).toContain(`id="${String(id)}"`)
  }
})

test('a hostile document is escaped', () => {
  const hostile = { ...document, servers: [{ url: `https://x/'"><script>` }] }
  expect(renderDocsPage(hostile)).not.toContain('<script')
})
