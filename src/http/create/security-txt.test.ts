// /.well-known/security.txt: its fields (RFC 9116), and the setting of its contacts.
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from '@jest/globals'
import {
  BASE_URL,
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import { ConfigError, parseConfig } from '../../config/config.ts'
import { SECURITY_TXT, securityContactSetting } from './security-txt.ts'

const YEAR_MS = 365 * 86_400_000
let app: RunningCreateApp | undefined
afterEach(() => app?.stop())

async function get(securityContacts: readonly string[], baseUrl = BASE_URL) {
  app = await startCreateApp(createdAsRequested, { securityContacts, baseUrl })
  return fetch(app.url + SECURITY_TXT)
}

const contactsOf = (value: string) =>
  parseConfig({ SECURITY_CONTACT: securityContactSetting }, { SECURITY_CONTACT: value })
    .SECURITY_CONTACT

test('the file has a line for each contact, in order, and expires within a year', async () => {
  const contacts = ['mailto:security@example.com', 'https://example.com/security']
  const response = await get(contacts)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('public, max-age=86400')
  const lines = (await response.text()).split('\n')
  const expires = lines.splice(2, 1)[0]?.replace('Expires: ', '') ?? ''
  expect(lines).toEqual([
    'Contact: mailto:security@example.com',
    'Contact: https://example.com/security',
    'Preferred-Languages: en',
    `Canonical: ${BASE_URL}/.well-known/security.txt`,
    '',
  ])
  expect(expires).toMatch(/^\d{4}-\d\d-\d\dT00:00:00\.000Z$/)
  expect(Date.parse(expires)).toBeGreaterThan(Date.now() + YEAR_MS / 4)
  expect(Date.parse(expires)).toBeLessThan(Date.now() + YEAR_MS)
})

test('without TLS, the file has no canonical URI', async () => {
  const response = await get(['mailto:a@b.example'], 'http://localhost:8080')
  const names = (await response.text()).split('\n').map((line) => line.split(':')[0])
  expect(names).toEqual(['Contact', 'Expires', 'Preferred-Languages', ''])
})

test('without a contact, the file does not exist', async () => {
  const response = await get([])
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ type: `${BASE_URL}/problems/not-found` })
})

test('another method gets 405', async () => {
  app = await startCreateApp(createdAsRequested, { securityContacts: ['mailto:a@b.example'] })
  const response = await fetch(app.url + SECURITY_TXT, { method: 'POST' })
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('contacts are separated by commas', () => {
  expect(contactsOf('mailto:a@b.example , https://a.example/%2C')).toEqual([
    'mailto:a@b.example',
    'https://a.example/%2C',
  ])
  expect(contactsOf('')).toEqual([])
})

/** The pattern of a contact in the chart's values. */
function chartPattern(): RegExp {
  const schema = JSON.parse(readFileSync('charts/curtail/values.schema.json', 'utf8')) as {
    properties: { securityContacts: { items: { pattern: string } } }
  }
  return new RegExp(schema.properties.securityContacts.items.pattern)
}

test.each([
  ...['mailto:a-b+c.d@my-site.example', "mailto:!#$%&'*/=^_`{|}~<>;@b", 'https://a-b.example'],
  ...['https://a.example:8443', 'https://a.example/', 'https://a.example:1/~b/c-d?e=@&f#g'],
])('%j is accepted by the service and by the chart', (contact) => {
  expect(contactsOf(contact)).toEqual([contact])
  expect(contact).toMatch(chartPattern())
})

const rejected = [
  ...['security@example.com', 'mailto:', 'mailto:a', 'http://a.example', 'https://', 'tel:+1'],
  ...['mailto:a@b@c', 'mailto:a?x@b', 'mailto:a@b?subject=x', 'mailto:a b@c', 'mailto:@b'],
  ...['https://[', 'https://[::1]/', 'https://a@b.example', 'https://a.example:0', 'https://a/b c'],
  ...['mailto:a@b.example\nExpires: never', 'https://a.example/é', 'https://a.example?b'],
  ...['mailto:a@b.example,', ','],
]

test.each(rejected)('%j is rejected by the service and by the chart', (contact) => {
  expect(() => contactsOf(contact)).toThrow(ConfigError)
  expect(() => contactsOf(contact)).toThrow(/SECURITY_CONTACT must be 1 to 10 mailto: or https:/)
  expect(contact).not.toMatch(chartPattern())
})

test('more than 10 contacts are rejected', () => {
  const contacts = Array.from({ length: 11 }, (_, i) => `mailto:a${i}@b.example`)
  expect(contactsOf(contacts.slice(1).join())).toHaveLength(10)
  expect(() => contactsOf(contacts.join())).toThrow(ConfigError)
})
