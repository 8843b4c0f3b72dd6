// What Envoy's statistics say of whom it serves, summed over the public listeners, and of the pods
// that it knows: nothing counted is not the same as nobody served, nor as somebody there.
import { expect, test } from '@jest/globals'
import { parseServed, parseUnreached } from './envoy-admin.ts'

const lines = (prefix: string, [active, requests, total]: readonly number[]) =>
  [
    `http.${prefix}.downstream_cx_active: ${String(active)}`,
    `http.${prefix}.downstream_cx_total: ${String(total)}`,
    `http.${prefix}.downstream_rq_active: ${String(requests)}`,
  ].join('\n')

test('all public listeners count, the admin and the metrics port do not', () => {
  const all = [
    lines('edge', [2, 1, 10]),
    lines('edge_https', [3, 0, 5]),
    lines('admin', [1, 1, 99]),
    lines('metrics', [1, 1, 99]),
  ]
  const served = { connections: 5, requests: 1, accepted: 15 }
  expect(parseServed(`${all.join('\n')}\n`)).toEqual(served)
})

test.each([
  ['nothing', ''],
  ['other listeners alone', lines('admin', [0, 0, 0])],
  ['one figure of three', 'http.edge.downstream_cx_active: 0\n'],
])('%s says nothing', (_, text) => {
  expect(parseServed(text)).toBeUndefined()
})

const members = (of: Record<string, number>) =>
  Object.entries(of)
    .map(([name, count]) => `cluster.${name}.membership_healthy: ${String(count)}\n`)
    .join('')

test.each([
  [[], members({ create: 1, redirect: 10 })],
  [['create'], members({ create: 0, redirect: 2 })],
  [['create', 'redirect'], members({ create: 0, redirect: 0 })],
  [['create'], members({ redirect: 2 })],
  [['create', 'redirect'], members({ ratelimit: 2 })],
  [['create', 'redirect'], ''],
])('%j have no pod: %j', (services, text) => {
  expect(parseUnreached(text)).toEqual(services)
})
