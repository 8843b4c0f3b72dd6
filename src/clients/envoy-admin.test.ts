// Envoy's statistics: its load, summed over the public listeners, and the services without a pod.
// A missing statistic is neither zero load nor an available pod.
import { expect, test } from '@jest/globals'
import { parseListenerLoad, parseUnreachable } from './envoy-admin.ts'

const loadLines = (prefix: string, [active, requests, total]: readonly number[]) =>
  [
    `http.${prefix}.downstream_cx_active: ${String(active)}`,
    `http.${prefix}.downstream_cx_total: ${String(total)}`,
    `http.${prefix}.downstream_rq_active: ${String(requests)}`,
  ].join('\n')

test('all public listeners count, the admin and the metrics port do not', () => {
  const all = [
    loadLines('edge', [2, 1, 10]),
    loadLines('edge_https', [3, 0, 5]),
    loadLines('admin', [1, 1, 99]),
    loadLines('metrics', [1, 1, 99]),
  ]
  const served = { connections: 5, requests: 1, accepted: 15 }
  expect(parseListenerLoad(`${all.join('\n')}\n`)).toEqual(served)
})

test.each([
  ['an empty page', ''],
  ['only other listeners', loadLines('admin', [0, 0, 0])],
  ['one statistic of three', 'http.edge.downstream_cx_active: 0\n'],
])('with %s, the load is unknown', (_, stats) => {
  expect(parseListenerLoad(stats)).toBeUndefined()
})

const memberLines = (of: Record<string, number>) =>
  Object.entries(of)
    .map(([name, count]) => `cluster.${name}.membership_healthy: ${String(count)}\n`)
    .join('')

test.each([
  [[], memberLines({ create: 1, redirect: 10 })],
  [['create'], memberLines({ create: 0, redirect: 2 })],
  [['create', 'redirect'], memberLines({ create: 0, redirect: 0 })],
  [['create'], memberLines({ redirect: 2 })],
  [['create', 'redirect'], memberLines({ ratelimit: 2 })],
  [['create', 'redirect'], ''],
])('the services %j have no pod if the page is %j', (services, stats) => {
  expect(parseUnreachable(stats)).toEqual(services)
})
