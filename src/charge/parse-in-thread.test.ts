// Rules parsed in a thread are the rules parsed here, decisions go on meanwhile, and a thread that
// hangs or is stopped is an error.
import { describe, expect, test } from '@jest/globals'
import { listRules } from '../limits/rule-tree.ts'
import { parseRules } from '../limits/rules.ts'
import { createThreadParser } from './parse-in-thread.ts'

const RULES = 10_000
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
const fileOf = (text: string) => [{ name: 'rules.yaml', text }]

describe('a set parsed in a thread', () => {
  test.each([
    ['good', mixed],
    ['with faults', mixed.replaceAll('minute', 'minuet')],
    ['with remarks', `${mixed}---\na: b\n`],
  ])('%s: is what it is parsed here', async (_, text) => {
    const parser = createThreadParser(options)
    const [parsed, here] = [await parser.parse(fileOf(text)), parseRules(fileOf(text), options)]
    expect(parsed).toEqual(here)
    if ('rules' in parsed && 'rules' in here) {
      expect(listRules(parsed.rules)).toEqual(listRules(here.rules)) // in the same order
    }
  })

  test('of 10,000 rules does not hold up this thread', async () => {
    const parser = createThreadParser(options)
    await parser.parse(fileOf(mixed)) // compiles what both use
    let [longestMs, turns, isDone] = [0, 0, false]
    let before = process.threadCpuUsage()
    // This thread's own work: what other processes do on a busy machine is none of it.
    const turn = () => {
      const now = process.threadCpuUsage()
      longestMs = Math.max(longestMs, (now.user + now.system - before.user - before.system) / 1000)
      before = now
      turns++
      if (!isDone) setImmediate(turn)
    }
    setImmediate(turn)
    const parsed = await parser.parse(fileOf(many))
    isDone = true
    expect('rules' in parsed && parsed.rules.get('shop')?.any.size).toBe(RULES)
    expect(turns).toBeGreaterThan(RULES / 50)
    expect(longestMs).toBeLessThan(5 * STALL_MS_MAX)
  })
})

describe('a thread that', () => {
  test('takes too long is an error, and the next one works', async () => {
    await expect(createThreadParser(options, 1).parse(fileOf(many))).rejects.toThrow(
      'parsing the files took longer than 1 ms',
    )
  })

  test('is stopped is an error at once', async () => {
    const parser = createThreadParser(options)
    const parsing = parser.parse(fileOf(many))
    const failed = expect(parsing).rejects.toThrow('the thread that parses the rules ended')
    await parser.stop()
    await failed
  })
})
