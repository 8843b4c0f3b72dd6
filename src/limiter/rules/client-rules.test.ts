// RATE_LIMITS: a file of rules is accepted as a whole, with its warnings, or rejected.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { readClientRules } from './client-rules.ts'

const folder = mkdtempSync(join(tmpdir(), 'curtail-client-rules-'))

afterAll(() => {
  rmSync(folder, { recursive: true })
})

function read(text: string) {
  const file = join(folder, 'rules.yaml')
  writeFileSync(file, text)
  return { file, read: () => readClientRules(file) }
}

test('the shipped rules have no warnings; off disables all limits', () => {
  const { rules, warnings } = readClientRules('shipped')
  expect([rules, warnings]).toEqual([expect.any(Map), []])
  expect(readClientRules('off')).toEqual({ rules: 'off', warnings: [] })
})

test('a limit without requests_per_unit, which denies every request, is a warning', () => {
  const { file, read: load } = read(`domain: curtail
descriptors: [{ key: route, descriptors: [{ key: client, rate_limit: { unit: second } }] }]
`)
  expect(load().warnings).toMatchObject([{ file, line: 2 }])
})

test('rules that no request matches are warnings', () => {
  const limit = 'rate_limit: { unit: day, requests_per_unit: 5 }'
  const { file, read: load } = read(`domain: curtail
descriptors:
  - { key: client, ${limit} }
  - key: route
    value: create
    ${limit}
    descriptors:
      - { key: client, value: 192.0.2.1, ${limit} }
      - { key: client, ${limit}, descriptors: [{ key: path, ${limit} }] }
      - { key: api_key, ${limit} }
      - { key: user, ${limit} }
  - { key: route, value: delete, descriptors: [{ key: client, ${limit} }] }
  - { key: route, value: re*, descriptors: [{ key: client, ${limit} }, { key: api_key, ${limit} }] }
  - { key: route, descriptors: [{ key: client, ${limit} }] }
`)
  const { warnings } = load()
  expect(warnings.map(({ path }) => path).sort()).toEqual([
    'curtail.client',
    'curtail.route_create',
    'curtail.route_create.client.path',
    'curtail.route_create.user',
    'curtail.route_delete.client',
    'curtail.route_re*.api_key',
  ])
  expect(warnings[0]).toMatchObject({ file, message: expect.stringContaining('no request') })
})

test('faults and another domain are rejected', () => {
  expect(read('domain: [').read).toThrow('RATE_LIMITS')
  expect(read('domain: shop\ndescriptors: []\n').read).toThrow('must have the domain')
})
