// The settings of the controller: names that Kubernetes allows, and one sentence for each fault.
import { expect, test } from '@jest/globals'
import { configProblems } from '../../test/kit/config-problems.ts'
import { parseConfig } from '../config/config.ts'
import { controllerSettings } from './settings.ts'

const required = { REFILL_POD_TEMPLATE: '/template.yaml' }
const parse = (env: Readonly<Record<string, string>>) =>
  parseConfig(controllerSettings, { ...required, ...env })
const problemsOf = (env: Readonly<Record<string, string>>) => configProblems(() => parse(env))
const longest = `a${'-'.repeat(61)}b`

test('only the pod template is required', () => {
  expect(parse({})).toMatchObject({ ...required, LEASE_NAME: 'curtail-controller' })
  expect(parse({}).WATCH_NAMESPACES).toBeUndefined()
  expect(parse({}).CLUSTER_NAME).toBe('')
})

test('namespaces are separated by commas, without spaces and duplicates', () => {
  const { WATCH_NAMESPACES } = parse({ WATCH_NAMESPACES: `b, a,b,${longest}` })
  expect(WATCH_NAMESPACES).toEqual(['b', 'a', longest])
})

test('the name of a cluster is the prefix of the owners of pools', () => {
  expect(parse({ CLUSTER_NAME: 'eu-1' }).CLUSTER_NAME).toBe('eu-1:')
})

test('at most 32 namespaces are watched', () => {
  const names = Array.from({ length: 33 }, (_, nth) => `n${nth}`)
  expect(problemsOf({ WATCH_NAMESPACES: names.slice(1).join() })).toEqual([])
  expect(problemsOf({ WATCH_NAMESPACES: names.join() })).toEqual([
    expect.stringContaining('1 to 32 namespace names'),
  ])
})

test.each(['-a', 'a-', 'A', 'a.b', 'a b', '_', `${longest}b`])(
  'the name %j is rejected',
  (name) => {
    for (const setting of ['LEASE_NAME', 'CLUSTER_NAME', 'WATCH_NAMESPACES'])
      expect([setting, problemsOf({ [setting]: name }).length]).toEqual([setting, 1])
  },
)
