// What POST /v1/urls says where the store did not confirm a link. What it stores is told in
// shorten/, and everything else over real stores in test/component.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type RunningCreateApp, startCreateApp } from '../../../test/parts/create-app.ts'
import type { CreateOutcome } from '../../create/create-link.ts'

const notConfirmed =
  'The store did not confirm the link: ' +
  'try again with the same Idempotency-Key, which makes no second link'
const nothing = 'The store could not take the link, and nothing of it was stored: try again'
const perhaps = 'We cannot tell whether the link was stored: try again'
const perhapsYours = `${perhaps}; if the alias is taken then, it may be yours`

let app: RunningCreateApp
let outcome: CreateOutcome

beforeAll(async () => {
  app = await startCreateApp(() => outcome)
})
afterAll(() => app.stop())

test.each([
  { kind: 'store-unavailable', detail: nothing },
  { kind: 'store-unavailable', alias: 'mine', detail: nothing },
  { kind: 'store-unavailable', key: 'k', detail: notConfirmed },
  { kind: 'outcome-unknown', detail: perhaps },
  { kind: 'outcome-unknown', alias: 'mine', detail: perhapsYours },
  { kind: 'outcome-unknown', alias: 'mine', key: 'k', detail: notConfirmed },
] as const)('$kind, alias $alias, key $key', async ({ kind, detail, ...asked }) => {
  outcome = { kind }
  const { alias, key } = { alias: undefined, key: undefined, ...asked }
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
