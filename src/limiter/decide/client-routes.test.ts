// Limits by client on each route, denials without a previous miss, and rules that no request has.
import { expect, test } from '@jest/globals'
import { rulesOf } from '../../../test/kit/rules-file.ts'
import { createMemoryCounterStore } from '../../stores/memory/counter-store.ts'
import { createClientLimits, findUnusedRules } from './client-limits.ts'

const ADDRESS = '192.0.2.1'

function limitsOf(...routes: readonly string[]) {
  const rules = rulesOf(`domain: curtail\ndescriptors:\n${routes.join('\n')}\n`)
  const store = createMemoryCounterStore({ nowUs: () => 1_790_000_000_000_000 })
  const limits = createClientLimits({ rules, store })
  return { rules, store, limits, client: limits.clientOf(ADDRESS) }
}

/** The rules of one route for each client. */
const routeOf = (route: string, ...limits: readonly string[]) =>
  `- {key: route, value: ${route}, descriptors: [{key: client, rate_limits: [${limits.join()}]}]}`
const perDay = (requests: number, more = '') =>
  `{unit: day, requests_per_unit: ${requests}, ${more}}`

test('each route has its own counter', () => {
  const { limits, client } = limitsOf(
    ...[routeOf('create', perDay(1)), routeOf('report', perDay(2)), routeOf('redirect', perDay(3))],
  )
  expect(client.key).toBe(`${ADDRESS}/32`)
  const reports = [1, 2, 3].map(() => limits.countReport(client))
  expect(reports.map(({ admitted }) => admitted)).toEqual([true, true, false])
  expect(reports[0]?.reported).toMatchObject({ limit: 2, remaining: 1 })
  expect(limits.countLookup(client).reported).toMatchObject({ limit: 3, remaining: 2 })
  expect(limits.countCreate(client).reported).toMatchObject({ limit: 1, remaining: 0 })
  expect(limits.countCreate(client).admitted).toBe(false)
})

test('a route without rules is not limited', () => {
  const { limits, client, store } = limitsOf(routeOf('create', perDay(1)))
  limits.countMiss(client)
  expect(limits.countLookup(client)).toEqual({ admitted: true, reported: undefined })
  expect(limits.countReport(client)).toEqual({ admitted: true, reported: undefined })
  expect(store.counterCount()).toBe(0)
})

test('a limit of 0 unknown codes denies each lookup', () => {
  const only = limitsOf(routeOf('unknown', perDay(0)))
  expect(only.limits.countLookup(only.client).admitted).toBe(false)
  const { limits, client } = limitsOf(routeOf('unknown', perDay(9), perDay(0, 'name: none')))
  expect(limits.countLookup(client).admitted).toBe(false)
})

test('a lookup that is denied for its misses is not counted', () => {
  const { limits, client } = limitsOf(routeOf('unknown', perDay(1)), routeOf('redirect', perDay(9)))
  expect(limits.countLookup(client).reported).toMatchObject({ limit: 9, remaining: 8 })
  limits.countMiss(client)
  const denied = limits.countLookup(client)
  expect(denied).toMatchObject({ admitted: false, reported: { limit: 1, remaining: 0 } })
  const withoutMisses = { ...client, missPeek: { checks: [], updates: [] } }
  expect(limits.countLookup(withoutMisses).reported).toMatchObject({ limit: 9, remaining: 7 })
})

test('a denied create does not count in a bucket', () => {
  const bucket = '{algorithm: token_bucket, unit: day, requests_per_unit: 1, burst: 3}'
  const { limits, client } = limitsOf(
    `- key: route
  value: create
  descriptors: [{key: client, rate_limit: ${perDay(1)}}, {key: api_key, rate_limit: ${bucket}}]`,
  )
  const create = (address: string) => limits.countCreate(limits.clientOf(address), 'shop')
  expect([create(ADDRESS), create(ADDRESS)].map(({ admitted }) => admitted)).toEqual([true, false])
  expect(limits.countCreate(client).admitted).toBe(false)
  const admitted = [2, 3, 4].map((at) => create(`192.0.2.${at}`).admitted)
  expect(admitted).toEqual([true, true, false])
})

test('every rule of another domain is unused, and those of a route that exists are used', () => {
  const other = rulesOf(`
domain: shop
descriptors: [{key: route, descriptors: [{key: client, rate_limit: ${perDay(1)}}]}]
`)
  expect(findUnusedRules(other).map(({ path }) => path)).toEqual(['shop.route.client'])
  const { rules } = limitsOf(
    routeOf('create', perDay(1), perDay(2)),
    '- {key: route, value: report, descriptors: [{key: client, value: a, ' +
      `rate_limit: ${perDay(1)}}]}`,
    `- {key: route, value: unknown, rate_limit: ${perDay(1)}}`,
  )
  expect(findUnusedRules(rules).map(({ path }) => path)).toEqual(['curtail.route_unknown'])
})
