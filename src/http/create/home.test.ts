// The home page and its form, over HTTP, without a browser.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  BASE_URL,
  createdAsRequested,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import type { CreateOutcome } from '../../create/create-link.ts'
import { de } from '../pages/strings/de.ts'
import { en } from '../pages/strings/en.ts'

let app: RunningCreateApp
let next: CreateOutcome | undefined

beforeAll(async () => {
  app = await startCreateApp((request) => next ?? createdAsRequested(request))
})
afterAll(() => app.stop())

const form = 'application/x-www-form-urlencoded'

async function submit(fields: Record<string, string> | string, others = {}) {
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  const headers = { 'Content-Type': form, ...others }
  const response = await fetch(`${app.url}/`, { method: 'POST', headers, body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The text of the element with this id, in a page. */
function textOf(text: string, id: string): string {
  return new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(text)?.[1]?.trim() ?? 'missing'
}

async function countOf(outcome: string): Promise<number> {
  const { values } = await app.metrics.creates.get()
  return values.find(({ labels }) => labels.result === outcome)?.value ?? 0
}

test('GET / is a page with a form, a strict policy and a hidden copy button', async () => {
  const response = await fetch(`${app.url}/`)
  const text = await response.text()
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(text).toMatch(/id="copy"\s+hidden/)
  expect(text).toMatch(/id="result"[^>]*hidden/)
  for (const name of ['long_url', 'custom_alias', 'ttl_days']) {
    expect(text).toContain(`<label for="${name}">`)
    expect(text).toMatch(new RegExp(`name="${name}"`))
  }
  expect(response.headers.get('vary')).toBe('Accept-Language')
  expect(text).not.toMatch(/ style=| on[a-z]+=|<script(?![^>]* src=)|<style/)
  expect((await fetch(`${app.url}/`, { method: 'HEAD' })).status).toBe(200)
})

test('messengers and search engines get a description and the complete address', async () => {
  const sentence = 'Paste a link and get a short one that always points to the same place.'
  for (const [path, description] of [
    ['/', sentence],
    ['/docs', 'How programs create and resolve short links.'],
    ['/problems/alias-taken', expect.stringContaining('alias')],
  ] as const) {
    const page = await (await fetch(app.url + path)).text()
    const contentOf = (name: string) => new RegExp(`${name}" content="([^"]*)"`).exec(page)?.[1]
    expect([contentOf('name="description'), contentOf('property="og:url')]).toEqual([
      description,
      BASE_URL + path,
    ])
    expect(contentOf('property="og:title')).toBe(/<title>([^<]*)</.exec(page)?.[1])
  }
})

test('the response to a valid form has the short link', async () => {
  const before = await countOf('created')
  const fields = { long_url: 'https://example.com/?a=1&b=2', custom_alias: 'mine', ttl_days: '2' }
  const { status, headers, text } = await submit(fields)
  expect(status).toBe(201)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('location')).toBe(`${BASE_URL}/mine`)
  expect(text).toMatch(/id="short"[^>]*>https:\/\/curtail\.example\/<wbr \/><span>mine<\/span></)
  expect(text).toContain(' src="/mine.svg"')
  expect(textOf(text, 'target')).toBe('https://example.com/?a=1&amp;b=2')
  expect(text).toContain('datetime="2027-01-03T00:00:00.000Z">3 January 2027 at 00:00 UTC<')
  expect(text).not.toMatch(/id="result"[^>]*hidden/)
  expect(app.requests.at(-1)).toEqual({
    longUrl: 'https://example.com/?a=1&b=2',
    alias: 'mine',
    ttlDays: 2,
    creatorId: null,
    idempotencyKey: undefined,
  })
  expect(await countOf('created')).toBe(before + 1)
})

test('faults are shown at their fields, and the entered values are kept, escaped', async () => {
  const before = await countOf('invalid-request')
  const hostile = '"><script>alert(1)</script>'
  const { status, headers, text } = await submit({ long_url: hostile, ttl_days: '9999' })
  expect(status).toBe(422)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(textOf(text, 'long_url-fault')).toMatch(/^The long link is not a web address/)
  expect(textOf(text, 'ttl_days-fault')).toMatch(/^Choose a date/)
  expect(textOf(text, 'custom_alias-fault')).toBe('')
  expect(text).not.toContain('<script>')
  expect(text).toContain('value="&quot;&gt;&lt;script&gt;')
  expect(text.match(/aria-invalid="true"/g)).toHaveLength(2)
  expect(text.match(/ autofocus/g)).toHaveLength(1)
  expect(await countOf('invalid-request')).toBe(before + 1)
})

test('a form without a link, with an unknown or a duplicate field is rejected', async () => {
  expect(textOf((await submit('')).text, 'long_url-fault')).toBe('The long link is required.')
  const unknown = await submit('long_url=https%3A%2F%2Fa.example&more=1')
  expect([unknown.status, textOf(unknown.text, 'message')]).toEqual([
    422,
    en.messages['unknown-field'],
  ])
  const duplicate = await submit('long_url=https%3A%2F%2Fa.example&long_url=x')
  expect([duplicate.status, textOf(duplicate.text, 'long_url-fault')]).toEqual([
    422,
    'This field must not be given more than once.',
  ])
})

test('an outcome of the store is shown on the page, with its status', async () => {
  const fields = { long_url: 'https://example.com/', custom_alias: 'mine' }
  try {
    next = { kind: 'alias-taken' }
    const taken = await submit(fields)
    expect([taken.status, textOf(taken.text, 'custom_alias-fault')]).toEqual([
      409,
      'The alias mine is taken by another link: choose another.',
    ])
    expect(textOf(taken.text, 'suggested')).toMatch(/^mine-[0-9a-f]{2}$/)
    const messages = {
      'pool-empty': en.messages['pool-empty'],
      'not-created': en.messages['store-unavailable'],
      'outcome-unknown': en.messages['store-unavailable'],
    } as const
    for (const [kind, message] of Object.entries(messages)) {
      next = { kind: kind as keyof typeof messages }
      const { status, headers, text } = await submit(fields)
      expect([status, headers.get('retry-after'), headers.get('cache-control')]).toEqual([
        503,
        '1',
        'no-store',
      ])
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(textOf(text, 'message')).toBe(message)
      expect(text).toContain('value="https://example.com/"')
    }
  } finally {
    next = undefined
  }
})

test('a form over the size limit gets a page with 413, JSON gets a problem with 415', async () => {
  const large = await submit({ long_url: 'x'.repeat(16 * 1024) })
  expect([large.status, textOf(large.text, 'message')]).toEqual([
    413,
    en.messages['body-too-large'],
  ])
  const other = await submit('{}', { 'Content-Type': 'application/json' })
  expect([other.status, other.headers.get('content-type')]).toEqual([
    415,
    'application/problem+json',
  ])
})

test('the page, its faults and its result are in German if the client prefers it', async () => {
  const german = { 'Accept-Language': 'fr, de-AT;q=0.9, en;q=0.5' }
  const page = await (await fetch(`${app.url}/`, { headers: german })).text()
  expect(page).toContain('<html lang="de">')
  expect(page).toContain(`<h1>${de.home.heading}</h1>`)
  const faulty = await submit({ long_url: 'x', custom_alias: 'docs' }, german)
  expect(textOf(faulty.text, 'long_url-fault')).toBe(de.faults['not-absolute-http'])
  expect(textOf(faulty.text, 'custom_alias-fault')).toContain('docs ist für den Dienst selbst')
  const created = await submit({ long_url: 'https://example.com/', ttl_days: '2' }, german)
  expect(created.text).toContain('>3. Januar 2027 um 00:00 UTC<')
  expect(created.headers.get('vary')).toBe('Accept-Language')
})
