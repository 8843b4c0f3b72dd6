// The values of requests with the most hits at each rule, and the log of the denied ones.
import { expect, test } from '@jest/globals'
import type { LimitRequest } from '../../limits/descriptor.ts'
import { planChecks } from '../../limits/plan-checks.ts'
import { parseRules } from '../../limits/parse-rules.ts'
import { logDenied } from './record-decisions.ts'
import { TopValues } from './top-values.ts'

const source = `
domain: edge
descriptors:
- key: client
  rate_limit: { unit: minute, requests_per_unit: 1 }
  descriptors:
  - key: path
    rate_limit: { unit: minute, requests_per_unit: 1 }
- key: api_key
  hashed: true
  rate_limit: { unit: minute, requests_per_unit: 1 }
- key: total
  value: all
  shadow_mode: true
  rate_limit: { name: all, unit: minute, requests_per_unit: 1 }
`
const parsed = parseRules([{ name: 'f', text: source }], { mergeDomains: false })
if ('faults' in parsed) throw new Error(parsed.faults[0]?.message)
const { rules } = parsed
const options = { areAllShadow: false, areAllQuotas: false, denyConsumes: true }

type Entries = Readonly<Record<string, string>>

function requestOf(entries: Entries, more: Partial<LimitRequest['descriptors'][number]> = {}) {
  const list = Object.entries(entries).map(([key, value]) => ({ key, value }))
  const descriptor = { entries: list, override: undefined, hits: undefined, ...more }
  return { domain: 'edge', descriptors: [descriptor], hits: 1 }
}

/** Top values, and a function that records a request. */
function createTop() {
  const top = new TopValues({ random: Math.random, nowMs: 1000 })
  const record = (request: LimitRequest, admitted = true) => {
    for (const check of planChecks(rules, request, options).checks) top.record(check, admitted)
  }
  return { top, record }
}

test('hits count by rule and by the values that select its counter', () => {
  const { top, record } = createTop()
  record(requestOf({ client: 'a' }))
  record(requestOf({ client: 'a' }), false)
  record(requestOf({ client: 'b:1' }, { hits: 5 }))
  record(requestOf({ client: 'a', path: '7:/x' }))
  record(requestOf({ total: 'all' }), false)
  expect(top.read(2000)).toEqual([
    {
      ...{ startedMs: 1000, untilMs: 2000 },
      top: [
        { rule: 'edge.client', isShadow: false, values: ['b:1'], hits: 5, denied: 0 },
        { rule: 'edge.client', isShadow: false, values: ['a'], hits: 2, denied: 1 },
        { rule: 'edge.client.path', isShadow: false, values: ['a', '7:/x'], hits: 1, denied: 0 },
        { rule: 'edge.total_all', name: 'all', isShadow: true, values: [], hits: 1, denied: 1 },
      ],
    },
  ])
})

test('a hashed value appears only as its hash, and a long one is truncated', () => {
  const { top, record } = createTop()
  record(requestOf({ api_key: 'secret' }))
  record(requestOf({ client: 'x'.repeat(5000) }))
  const values = top.read(2000)[0]?.top.map((one) => one.values[0])
  expect(values).toEqual([expect.stringMatching(/^sha256:[0-9a-f]{64}$/), 'x'.repeat(200)])
})

test('peeks and refunds are not hits', () => {
  const { top, record } = createTop()
  record(requestOf({ client: 'a' }, { hits: 0 }))
  record(requestOf({ client: 'a' }, { hits: -3 }))
  expect(top.read(2000)[0]?.top).toEqual([])
})

test('the limit overrides of a domain count together', () => {
  const { top, record } = createTop()
  const override = { requestsPerUnit: 1, unit: 'MINUTE' } as const
  record(requestOf({ client: 'a' }, { override }))
  record(requestOf({ client: 'b' }, { override }))
  const { top: values = [] } = { ...top.read(2000)[0] }
  expect(values.map((one) => [one.rule, ...one.values])).toEqual([
    ['edge.override', 'client', 'a'],
    ['edge.override', 'client', 'b'],
  ])
})

test('the last complete minute remains beside the current one', () => {
  const { top, record } = createTop()
  record(requestOf({ client: 'a' }))
  top.endMinute(61_000)
  record(requestOf({ client: 'b' }))
  top.endMinute(121_000)
  record(requestOf({ client: 'c' }))
  const minutes = top.read(125_000)
  expect(minutes.map(({ startedMs, untilMs }) => [startedMs, untilMs])).toEqual([
    [61_000, 121_000],
    [121_000, 125_000],
  ])
  expect(minutes.map((minute) => minute.top.map((one) => one.values))).toEqual([[['b']], [['c']]])
})

test('at most 100 values of a rule are reported', () => {
  const { top, record } = createTop()
  for (let i = 0; i < 400; i++) record(requestOf({ client: `c${i}` }), i < 150)
  expect(top.read(2000)[0]?.top).toHaveLength(100)
})

test('the log has a line for each denied value, at most 20, and the number of the others', () => {
  const { top, record } = createTop()
  for (let i = 1; i <= 25; i++) {
    for (let times = 0; times < i; times++) record(requestOf({ client: `c${i}` }), false)
  }
  record(requestOf({ client: 'admitted' }))
  for (let times = 0; times < 30; times++) record(requestOf({ total: 'all' }), false)
  const lines: unknown[] = []
  logDenied(top.endMinute(61_000), { info: (...line: unknown[]) => lines.push(line) })
  expect(lines).toHaveLength(21)
  expect(lines[0]).toEqual([
    { rule: 'edge.total_all', name: 'all', values: [], hits: 30, denied: 30 },
    'hits beyond the limit, admitted by shadow mode, in the last minute',
  ])
  expect(lines[1]).toEqual([
    { rule: 'edge.client', values: ['c25'], hits: 25, denied: 25 },
    'hits denied in the last minute',
  ])
  expect(lines[20]).toEqual([{ others: 6 }, 'more values exceeded their limits in the last minute'])
})
