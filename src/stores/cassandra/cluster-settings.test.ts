// Cluster settings that differ from those the design requires.
import { expect, test } from '@jest/globals'
import { checkSettings, readSettingProblems } from './cluster-settings.ts'

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

test('a cluster with the required settings, or that lists no settings, has no problems', () => {
  expect(checkSettings([nodeWith(), nodeWith()])).toEqual([])
  expect(checkSettings([new Map()])).toEqual([])
  expect(checkSettings([])).toEqual([])
})

test.each([
  ['commitlog_sync', 'batch'],
  ['disk_failure_policy', 'stop_paranoid'],
  ['disk_failure_policy', 'die'],
  ['commit_failure_policy', 'stop_commit'],
  ['cas_contention_timeout', '1s'],
  ['cas_contention_timeout', '1800'],
  ['write_request_timeout', '2000ms'],
  ['write_request_timeout', '0m'],
])('%s=%s is no problem', (setting, value) => {
  expect(checkSettings([nodeWith({ [setting]: value })])).toEqual([])
})

test.each([
  ['paxos_variant', 'v1'],
  ['storage_compatibility_mode', 'CASSANDRA_4'],
  ['commitlog_sync', 'periodic'],
  ['disk_failure_policy', 'ignore'],
  ['disk_failure_policy', 'best_effort'],
  ['commit_failure_policy', 'ignore'],
  ['cas_contention_timeout', '5s'],
  ['cas_contention_timeout', '1801ms'],
  ['cas_contention_timeout', '1801'],
  ['cas_contention_timeout', 'null'],
  ['cas_contention_timeout', ''],
  ['write_request_timeout', '1m'],
  ['write_request_timeout', '-1s'],
  ['write_request_timeout', '1s 500ms'],
  ['hinted_handoff_enabled', 'false'],
])('%s=%s is reported with its cost', (setting, value) => {
  const problems = checkSettings([nodeWith({ [setting]: value })])
  expect(problems).toEqual([
    expect.objectContaining({ setting, values: [value], costs: expect.stringMatching(/.{30}/) }),
  ])
})

test('one differing node is reported, and each value is listed once', () => {
  const nodes = [nodeWith(), nodeWith({ paxos_variant: 'v1' }), nodeWith()]
  expect(checkSettings(nodes).map(({ values }) => values)).toEqual([['v2', 'v1']])
})

test('nodes that return no settings are unreadable', async () => {
  const executeOnEach = () => Promise.resolve([[], []])
  expect(await readSettingProblems({ executeOnEach })).toBe('unreadable')
})

test('nodes that return their settings are checked', async () => {
  const rows = [
    { name: 'paxos_variant', value: 'v1' },
    { name: 'commitlog_sync', value: 5 },
    { name: 'x', value: null },
  ]
  const executeOnEach = () => Promise.resolve([[], rows])
  const problems = await readSettingProblems({ executeOnEach })
  expect(problems).toEqual([expect.objectContaining({ setting: 'paxos_variant' })])
})
