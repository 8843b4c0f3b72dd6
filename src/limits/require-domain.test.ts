// The domain that the client sends must have rules.
import { expect, test } from '@jest/globals'
import { requireDomain } from './require-domain.ts'
import { parseRules } from './parse-rules.ts'

const rules = `
descriptors:
- key: a
  descriptors:
  - key: b
    rate_limit: { unit: second, requests_per_unit: 1 }
`

function parse(...domains: readonly string[]) {
  const files = domains.map((domain) => ({
    name: `${domain}.yaml`,
    text: `domain: ${domain}\n${rules}`,
  }))
  return parseRules(files, { mergeDomains: false })
}

function messageOf(...domains: readonly string[]): string | undefined {
  const parsed = requireDomain(parse(...domains), { domain: 'edge', place: 'rules' })
  return 'faults' in parsed ? parsed.faults[0]?.message : undefined
}

test('a set with rules for the domain is unchanged, and so is one with faults', () => {
  expect(messageOf('shop', 'edge')).toBeUndefined()
  expect(messageOf('shop', 'shop')).toBe("duplicate domain 'shop' in config file")
})

test('without a required domain any set is unchanged', () => {
  const parsed = parse('shop')
  expect(requireDomain(parsed, { domain: '', place: 'rules' })).toBe(parsed)
})

test('the message lists at most ten domains', () => {
  const start = "no file has rules for the required domain 'edge': "
  expect(messageOf()).toBe(`${start}there are no rules`)
  const ten = Array.from({ length: 10 }, (_, n) => `d${n}`)
  const listed = ten.map((domain) => `'${domain}'`).join(', ')
  expect(messageOf(...ten)).toBe(`${start}the domains with rules are ${listed}`)
  const more = messageOf(...ten, 'd10', 'd11')
  expect(more).toBe(`${start}the domains with rules are ${listed} and 2 more`)
})

test.each(['', 'descriptors: []\n', 'descriptors: [{ key: a }]\n'])(
  'a set without a rule for the domain is rejected: %j',
  (descriptors) => {
    const files = [{ name: 'f', text: `domain: edge\n${descriptors}` }]
    const parsed = parseRules(files, { mergeDomains: false })
    expect(requireDomain(parsed, { domain: 'edge', place: 'f' })).toStrictEqual({
      faults: [
        {
          ...{ file: 'f', line: 1 },
          message: "no file has rules for the required domain 'edge': there are no rules",
        },
      ],
    })
  },
)

test('the fault of a resource has its path', () => {
  const parsed = requireDomain(parse(), { domain: 'edge', place: 'rules', path: 'spec.domain' })
  const message = "no resource has rules for the required domain 'edge': there are no rules"
  const fault = { file: 'rules', line: 1, path: 'spec.domain', message }
  expect(parsed).toEqual({ faults: [fault] })
})
