// Checks a cluster's settings against those the design requires, with the cost of each difference.
// Reads the nodes' settings table; changes nothing.
import type { Cassandra } from './client.ts'
import type { Row } from './row.ts'

/** A setting that differs from the required value. */
export interface SettingProblem {
  readonly setting: string
  /** The distinct values on the nodes. */
  readonly values: readonly string[]
  readonly wanted: string
  /** The consequence, one sentence. */
  readonly costs: string
}

interface ExpectedSetting extends Omit<SettingProblem, 'values'> {
  readonly isGood: (value: string) => boolean
}

/** All checked settings. */
export const expectedSettings: readonly ExpectedSetting[] = [
  {
    setting: 'paxos_variant',
    wanted: 'v2',
    isGood: (value) => value === 'v2',
    costs:
      'every claim takes 4 round trips instead of 2 and serial reads cost up to 4 times the CPU; ' +
      'claims may be decided wrongly while the ring is being changed',
  },
  {
    setting: 'storage_compatibility_mode',
    wanted: 'NONE',
    isGood: (value) => value === 'NONE',
    costs: 'links that expire after 2038-01-19 cannot be stored: creating them fails',
  },
  {
    setting: 'commitlog_sync',
    wanted: 'group or batch',
    isGood: (value) => value === 'batch' || value === 'group',
    costs:
      'a node acknowledges writes that its log does not have yet: when the processes of a ' +
      'majority of replicas crash within the sync period (no power loss is needed), ' +
      'acknowledged links are lost, and their aliases can be claimed for another target',
  },
  {
    setting: 'disk_failure_policy',
    wanted: 'stop, stop_paranoid or die',
    isGood: (value) => ['stop', 'stop_paranoid', 'die'].includes(value),
    costs: 'a node whose disk fails continues to respond, without some links',
  },
  {
    setting: 'commit_failure_policy',
    wanted: 'stop, stop_commit or die',
    isGood: (value) => value !== 'ignore',
    costs: 'a node that cannot write its log continues to acknowledge writes that it may lose',
  },
  {
    setting: 'cas_contention_timeout',
    wanted: 'at most 1800ms',
    isGood: (value) => isAtMostMs(value, 1800),
    costs:
      "contended claims can take longer than the service's timeout (2.2 s): more of them then " +
      'have an unknown outcome',
  },
  {
    setting: 'write_request_timeout',
    wanted: 'at most 2000ms',
    isGood: (value) => isAtMostMs(value, 2000),
    costs:
      "slow writes can take longer than the service's timeout (2.2 s): more of them then have an " +
      'unknown outcome',
  },
  {
    setting: 'hinted_handoff_enabled',
    wanted: 'true',
    isGood: (value) => value === 'true',
    costs: 'a replica that was down receives the missed writes only by repair',
  },
]

function isAtMostMs(value: string, maxMs: number): boolean {
  const [, amount = '', unit = ''] = /^(\d+)(ms|s|m)?$/.exec(value) ?? []
  const factor = unit === 's' ? 1000 : unit === 'm' ? 60_000 : 1
  return amount !== '' && Number(amount) * factor <= maxMs
}

/** One node's settings by name. */
export type NodeSettings = ReadonlyMap<string, string>

/** The settings that differ on any node; a setting that no node lists is ignored. */
export function checkSettings(nodes: readonly NodeSettings[]): SettingProblem[] {
  return expectedSettings.flatMap(({ setting, wanted, isGood, costs }) => {
    const values = [...new Set(nodes.flatMap((node) => node.get(setting) ?? []))]
    return values.every(isGood) ? [] : [{ setting, values, wanted, costs }]
  })
}

/** The differences on the reachable nodes, or `unreadable` if no node returns its settings. */
export async function readSettingProblems(
  cassandra: Pick<Cassandra, 'executeOnEach'>,
): Promise<SettingProblem[] | 'unreadable'> {
  const results = await cassandra.executeOnEach('SELECT name, value FROM system_views.settings')
  const nodes = results.filter((rows) => rows.length > 0).map(settingsOf)
  return nodes.length === 0 ? 'unreadable' : checkSettings(nodes)
}

function settingsOf(rows: readonly Row[]): NodeSettings {
  return new Map(
    rows.flatMap(({ name, value }) =>
      typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
    ),
  )
}
