// Settings of a cluster that differ from what the design rests on.
import { expect, test } from '@jest/globals'
import { findSettings, observeSettings } from './cluster-settings.ts'

const good: Readonly<Record<string, string>> = {
  paxos_variant: 'v2',
  storage_compatibility_mode: 'NONE',
  commitlog_sync: 'group',
  disk_failure_policy: 'stop',
  commit_failure_policy: 'die',
  cas_contention_timeout: '1800ms',
  write_request_timeout: '2s',
  hinted_handoff_enabled: 'true',
}
const nodeWith = (change: Readonly<Record<string, string>> = {}) =>
  new Map(Object.entries({ ...good, ...change }))

test('a cluster as it should be has no findings, nor has one that lists nothing', () => {
  expect(findSettings([nodeWith(), nodeWith()])).toEqual([])
  expect(findSettings([new Map()])).toEqual([])
  expect(findSettings([])).toEqual([])
})

test.each([
  ['paxos_variant', 'v1'],
  ['storage_compatibility_mode', 'CASSANDRA_4'],
  ['commitlog_sync', 'periodic'],
  ['disk_failure_policy', 'ignore'],
  ['commit_failure_policy', 'ignore'],
  ['cas_contention_timeout', '5s'],
  ['write_request_timeout', '1m'],
  ['hinted_handoff_enabled', 'false'],
])('%s=%s is found, with what it costs', (setting, value) => {
  const findings = findSettings([nodeWith({ [setting]: value })])
  expect(findings).toEqual([
    expect.objectContaining({ setting, values: [value], costs: expect.stringMatching(/.{30}/) }),
  ])
})

test('one node that differs is enough, and each value is shown once', () => {
  const nodes = [nodeWith(), nodeWith({ paxos_variant: 'v1' }), nodeWith()]
  expect(findSettings(nodes).map(({ values }) => values)).toEqual([['v2', 'v1']])
})

test('nodes that let nobody read their settings are unreadable', async () => {
  const executeOnEach = () => Promise.resolve([[], []])
  expect(await observeSettings({ executeOnEach })).toBe('unreadable')
})

test('of several nodes those that tell are judged', async () => {
  const rows = [
    { name: 'paxos_variant', value: 'v1' },
    { name: 'x', value: null },
  ]
  const executeOnEach = () => Promise.resolve([[], rows])
  const findings = await observeSettings({ executeOnEach })
  expect(findings).toEqual([expect.objectContaining({ setting: 'paxos_variant' })])
})
