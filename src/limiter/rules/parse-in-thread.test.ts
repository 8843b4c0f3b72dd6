// Rules parsed in a thread equal those parsed in the main thread, decisions continue,
// and a thread that hangs or is stopped results in an error.
import { describe, expect, jest, test } from '@jest/globals'
import { listRules } from '../../limits/rule-tree.ts'
import { RuleBuilder } from '../../limits/rule-records.ts'
import { parseRules } from '../../limits/parse-rules.ts'
import { createThreadParser } from './parse-in-thread.ts'

const RULES = 10_000
const RECORDS_PER_SLICE = 100
const STALL_MS_MAX = 5

const options = { mergeDomains: false }
const mixed = `
domain: shop
descriptors:
  - key: path
    value: /a*
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 3}
    descriptors:
      - key: secret
        hashed: true
        metadata: {a: [1, {b: null}]}
        rate_limit: {unit: day, requests_per_unit: 1}
  - {key: path, value: /b, rate_limit: {unlimited: true}}
  - {key: path, value: '/*', rate_limit: {unit: minute, requests_per_unit: 5}}
  - key: path
    rate_limit:
      - {algorithm: token_bucket, unit: second, requests_per_unit: 3, burst: 9, name: x}
      - {algorithm: sliding_window_log, unit: day, requests_per_unit: 3, replaces: [{name: x}]}
`
const rule = (n: number) => `  - {key: k${n}, rate_limit: {unit: minute, requests_per_unit: 9}}`
const listed = Array.from({ length: RULES }, (_, n) => rule(n)).join('\n')
const many = `domain: shop\ndescriptors:\n${listed}\n`
const fileOf = (yaml: string) => [{ name: 'rules.yaml', text: yaml }]

describe('a set parsed in a thread', () => {
  test.each([
    ['valid', mixed],
    ['with faults', mixed.replaceAll('minute', 'minuet')],
    ['with warnings', `${mixed}---\na: b\n`],
  ])('%s: equals the set parsed in the main thread', async (_, yaml) => {
    const parser = createThreadParser(options)
    const [parsed, direct] = [await parser.parse(fileOf(yaml)), parseRules(fileOf(yaml), options)]
    expect(parsed).toEqual(direct)
    if ('rules' in parsed && 'rules' in direct) {
      expect(listRules(parsed.rules)).toEqual(listRules(direct.rules)) // in the same order
    }
  })

  test('of 10,000 rules does not block the main thread', async () => {
    const parser = createThreadParser(options)
    await parser.parse(fileOf(mixed)) // compiles the shared code first
    const added = jest.spyOn(RuleBuilder.prototype, 'add')
    const turns: { rules: number; cpuMs: number }[] = []
    let isDone = false
    let before = process.threadCpuUsage()
    const turn = () => {
      const [now, rules] = [process.threadCpuUsage(), added.mock.calls.length]
      const cpuMs = (now.user + now.system - before.user - before.system) / 1000
      if (rules > 0) turns.push({ rules, cpuMs })
      added.mockClear()
      before = now
      if (!isDone) setImmediate(turn)
    }
    setImmediate(turn)
    const parsed = await parser.parse(fileOf(many))
    isDone = true
    added.mockRestore()
    expect('rules' in parsed && parsed.rules.get('shop')?.any.size).toBe(RULES)
    expect(Math.max(...turns.map(({ rules }) => rules))).toBeLessThanOrEqual(RECORDS_PER_SLICE)
    // The median, because garbage collection of earlier tests may take longer than any slice.
    const medianMs = turns.map(({ cpuMs }) => cpuMs).sort((a, b) => a - b)[turns.length >> 1]
    expect(medianMs).toBeLessThan(5 * STALL_MS_MAX)
  })
})

describe('a thread that', () => {
  test('times out results in an error', async () => {
    await expect(createThreadParser(options, 1).parse(fileOf(many))).rejects.toThrow(
      'parsing the rules took longer than 1 ms',
    )
  })

  test('needs too much memory results in an error', async () => {
    const parsing = createThreadParser(options, 60_000, 12).parse(fileOf(many))
    await expect(parsing).rejects.toThrow(
      'the rules need more heap than the thread that parses them has: raise --max-old-space-size',
    )
  })

  test('cannot start results in an error with the cause', async () => {
    // Usually EAGAIN; here, a value that cannot be sent to a thread.
    const uncloneable = { mergeDomains: false, denyConsumes: () => true } as never
    await expect(createThreadParser(uncloneable).parse(fileOf(mixed))).rejects.toThrow(
      /^the thread that parses the rules cannot start: .+ could not be cloned/,
    )
  })

  test('is stopped results in an error immediately', async () => {
    const parser = createThreadParser(options)
    const parsing = parser.parse(fileOf(many))
    const failed = expect(parsing).rejects.toThrow('the thread that parses the rules stopped')
    await parser.stop()
    await failed
  })
})
