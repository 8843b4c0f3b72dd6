// The response of POST /v1/urls when the store does not confirm a link, or the target is blocked.
// What is stored is tested in src/create, and everything else with real stores in test/component.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  BASE_URL,
  BLOCKED_TARGET,
  type RunningCreateApp,
  startCreateApp,
} from '../../../test/kit/http/create-app.ts'
import type { CreateOutcome } from '../../create/create-link.ts'

const notConfirmed =
  'The store did not confirm the link: ' +
  'retry with the same Idempotency-Key, which creates no second link'
const notStored = 'The store is unavailable, and the link was not stored: retry'
const unknown = 'It is unknown whether the link was stored: retry'
const unknownAlias = `${unknown}; if the alias is taken then, this request may have taken it`

let app: RunningCreateApp
let outcome: CreateOutcome

beforeAll(async () => {
  app = await startCreateApp(() => outcome)
})
afterAll(() => app.stop())

test.each([
  { kind: 'not-created', detail: notStored },
  { kind: 'not-created', alias: 'mine', detail: notStored },
  { kind: 'not-created', key: 'k', detail: notConfirmed },
  { kind: 'outcome-unknown', detail: unknown },
  { kind: 'outcome-unknown', alias: 'mine', detail: unknownAlias },
  { kind: 'outcome-unknown', alias: 'mine', key: 'k', detail: notConfirmed },
] as const)('$kind, alias $alias, key $key', async ({ kind, detail, ...given }) => {
  outcome = { kind }
  const { alias, key } = { alias: undefined, key: undefined, ...given }
  const response = await fetch(`${app.url}/v1/urls`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(key !== undefined && { 'Idempotency-Key': key }),
    },
    body: JSON.stringify({ long_url: 'https://example.com/', custom_alias: alias }),
  })
  expect([response.status, response.headers.get('Retry-After')]).toEqual([503, '1'])
  const problem = (await response.json()) as Record<string, unknown>
  expect(String(problem['type'])).toMatch(/\/store-unavailable$/)
  expect(problem['detail']).toBe(detail)
})

test('a blocked target is rejected before anything is stored', async () => {
  const before = app.requests.length
  const response = await fetch(`${app.url}/v1/urls`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ long_url: BLOCKED_TARGET }),
  })
  expect(response.status).toBe(422)
  expect(await response.json()).toMatchObject({
    type: `${BASE_URL}/problems/target-blocked`,
    status: 422,
    detail: 'The operator of this service blocks the target of long_url',
  })
  expect(app.requests).toHaveLength(before)
  const { values } = await app.metrics.creates.get()
  expect(values).toContainEqual({ labels: { result: 'target-blocked' }, value: 1 })
})
