// The header X-API-Key of creates over HTTP, on the API and on the form: which creator a link gets,
// and the order of the limit, the key and the body.
import { afterEach, describe, expect, test } from '@jest/globals'
import { createdAsRequested, startCreateApp } from '../../../test/kit/http/create-app.ts'
import type { ClientKeys } from '../../create/client-keys.ts'
import { noLimits, type RequestLimits } from '../limit-requests.ts'

const longUrl = 'https://example.com/'
const find = (header: unknown) =>
  header === 'valid' ? { name: 'shop', creatorId: 2n ** 63n - 1n } : undefined

let stop: () => Promise<void>
afterEach(() => stop())

async function start(keys: ClientKeys, limits?: RequestLimits) {
  const app = await startCreateApp(createdAsRequested, { keys, ...(limits && { limits }) })
  stop = () => app.stop()
  return app
}

const routes = {
  api: { path: '/v1/urls', type: 'application/json', body: JSON.stringify({ long_url: longUrl }) },
  form: {
    path: '/',
    type: 'application/x-www-form-urlencoded',
    body: `long_url=${encodeURIComponent(longUrl)}`,
  },
}

describe.each(Object.entries(routes))('the %s', (name, { path, type, body }) => {
  const send = (url: string, key?: string, sent = body) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'Content-Type': type, ...(key !== undefined && { 'X-API-Key': key }) },
      body: sent,
    })

  test.each([
    ['valid', 2n ** 63n - 1n],
    ['unknown', null],
    [undefined, null],
  ])('with the key %s, stores a link of the creator %s', async (key, creatorId) => {
    const app = await start({ find, isRequired: false })
    expect((await send(app.url, key)).status).toBe(201)
    expect(app.requests).toMatchObject([{ longUrl, creatorId }])
  })

  test('rejects creates without a valid key if keys are required, with any body', async () => {
    const app = await start({ find, isRequired: true })
    expect((await send(app.url, 'valid')).status).toBe(201)
    for (const response of [await send(app.url), await send(app.url, 'unknown', '{')]) {
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'ApiKey'])
      expect(response.headers.get('cache-control')).toBe('no-store')
      const detail =
        'The header X-API-Key must have a valid API key: it is absent, unknown or expired'
      const onPage = 'send an API key in the header'
      expect(await response.text()).toContain(name === 'api' ? `"detail":"${detail}"` : onPage)
    }
    expect(app.requests).toHaveLength(1)
    const { values } = await app.metrics.creates.get()
    const rejected = values.find(({ labels }) => labels.result === 'api-key-required')
    expect(rejected?.value).toBe(2)
  })

  test('counts a create, by the name of its key, before it rejects the create', async () => {
    const counted: (string | undefined)[] = []
    const headers = { limit: '3', remaining: '2', reset: '1' }
    const limits: RequestLimits = {
      ...noLimits,
      onCreate(_req, apiKeyName) {
        counted.push(apiKeyName)
        const isAdmitted = counted.length < 3
        const problem = { name: 'rate-limited', detail: 'The limit is used up' } as const
        return { headers, problem: isAdmitted ? undefined : problem }
      },
    }
    const app = await start({ find, isRequired: true }, limits)
    const statuses: number[] = []
    for (const key of ['valid', 'unknown', 'unknown']) {
      const response = await send(app.url, key)
      statuses.push(response.status)
      expect(response.headers.get('x-ratelimit-remaining')).toBe('2')
      await response.arrayBuffer()
    }
    expect(statuses).toEqual([201, 401, 429])
    expect(counted).toEqual(['shop', undefined, undefined])
  })

  test('a create that fails unexpectedly has the headers of its limit, too', async () => {
    const limits: RequestLimits = {
      ...noLimits,
      onCreate: () => ({
        headers: { limit: '3', remaining: '2', reset: '1' },
        problem: undefined,
      }),
    }
    const fail = () => {
      throw new Error('a defect')
    }
    const app = await startCreateApp(fail, { keys: { find, isRequired: false }, limits })
    stop = () => app.stop()
    const response = await send(app.url)
    expect([response.status, response.headers.get('x-ratelimit-remaining')]).toEqual([500, '2'])
  })
})
