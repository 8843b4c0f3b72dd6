// What Envoy's statistics say of whom it serves: summed over the public listeners, and nothing
// where a figure is missing.
import { expect, test } from '@jest/globals'
import { parseServed } from './envoy-admin.ts'

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
