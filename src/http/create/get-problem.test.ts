// Pages of problem types and of the API, over HTTP.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  BASE_URL,
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import { de } from '../pages/strings/de.ts'
import { problemTypes } from '../problem.ts'

let app: RunningCreateApp

beforeAll(async () => {
  app = await startCreateApp(createdAsRequested)
})
afterAll(() => app.stop())

test('every problem type has a page with its title, status and URI', async () => {
  for (const [name, { title, status }] of Object.entries(problemTypes)) {
    const response = await fetch(`${app.url}/problems/${name}`)
    const page = await response.text()
    expect([name, response.status]).toEqual([name, 200])
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page).toContain(`<h1>${title}</h1>`)
    expect(page).toContain(`HTTP ${status}`)
    expect(page).toContain(`${BASE_URL}/problems/${name}`)
  }
})

test('other names are not found', async () => {
  for (const name of ['nothing', 'constructor', '__proto__', 'Alias-Taken', 'alias-taken/']) {
    expect((await fetch(`${app.url}/problems/${name}`)).status).toBe(404)
  }
})

test('GET /openapi.json and GET /docs contain the base URL', async () => {
  const openApi = await fetch(`${app.url}/openapi.json`)
  expect(openApi.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await openApi.json()).toMatchObject({ openapi: '3.1.0', servers: [{ url: BASE_URL }] })
  const docs = await fetch(`${app.url}/docs`)
  expect(docs.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await docs.text()).toContain(`curl -i &#39;${BASE_URL}/v1/urls&#39;`)
})

test('404 is a page for a browser and a problem document for a program', async () => {
  const page = await fetch(`${app.url}/no/where`, { headers: { Accept: 'text/html' } })
  expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  expect(await page.text()).toContain('There is nothing here')
  const problem = await fetch(`${app.url}/no/where`)
  expect(problem.headers.get('content-type')).toBe('application/problem+json')
})

test('problem types and the 404 page are in German if the client prefers it', async () => {
  const headers = { Accept: 'text/html', 'Accept-Language': 'de' }
  const pageAt = async (path: string) => (await fetch(app.url + path, { headers })).text()
  expect(await pageAt('/no/where')).toContain(`<h1>${de.notFound.heading}</h1>`)
  for (const [name, { title }] of Object.entries(de.problems)) {
    const page = await pageAt(`/problems/${name}`)
    expect(page).toContain('<html lang="de">')
    expect(page).toContain(`<h1>${title}</h1>`)
  }
})
