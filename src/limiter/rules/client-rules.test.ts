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
  const rules = 'domain: curtail\ndescriptors: [{ key: route, rate_limit: { unit: second } }]\n'
  const { file, read: load } = read(rules)
  expect(load().warnings).toMatchObject([{ file, line: 2 }])
})

test('faults and another domain are rejected', () => {
  expect(read('domain: [').read).toThrow('RATE_LIMITS')
  expect(read('domain: shop\ndescriptors: []\n').read).toThrow('must have the domain')
})
