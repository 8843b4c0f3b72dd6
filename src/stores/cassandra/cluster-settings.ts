// What of a cluster's settings differs from what the design rests on, and what each costs. Reads
// the nodes' own list; changes nothing.
import type { Cassandra } from './client.ts'
import type { Row } from './row.ts'

/** One setting that differs. */
export interface SettingFinding {
  readonly setting: string
  /** What the nodes have, each value once. */
  readonly values: readonly string[]
  readonly wanted: string
  /** What that costs, one sentence. */
  readonly costs: string
}

interface Wanted {
  readonly setting: string
  readonly wanted: string
  readonly isGood: (value: string) => boolean
  readonly costs: string
}

/** Every setting that is checked. */
export const wantedSettings: readonly Wanted[] = [
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
    costs: 'links that would end after 2038-01-19 cannot be stored: creating them fails',
  },
  {
    setting: 'commitlog_sync',
    wanted: 'group or batch',
    isGood: (value) => value === 'batch' || value === 'group',
    costs:
      'a node acknowledges writes that its log does not have yet: when the processes of a ' +
      'majority of replicas crash within the sync period (no power loss is needed), ' +
      'acknowledged links are lost, and their aliases can be claimed again for another target',
  },
  {
    setting: 'disk_failure_policy',
    wanted: 'stop, die or best_effort',
    isGood: (value) => value !== 'ignore',
    costs: 'a node whose disk fails goes on answering, with links missing',
  },
  {
    setting: 'commit_failure_policy',
    wanted: 'stop, stop_commit or die',
    isGood: (value) => value !== 'ignore',
    costs: 'a node that cannot write its log goes on acknowledging what it may lose',
  },
  {
    setting: 'cas_contention_timeout',
    wanted: 'at most 1800ms',
    isGood: (value) => isAtMostMs(value, 2000),
    costs:
      'claims whose key is contended answer after our own bound of 2.2 s: more of them end as ' +
      'unknown and are read again',
  },
  {
    setting: 'write_request_timeout',
    wanted: 'at most 2000ms',
    isGood: (value) => isAtMostMs(value, 2200),
    costs: 'slow writes answer after our own bound of 2.2 s: more of them end as unknown',
  },
  {
    setting: 'hinted_handoff_enabled',
    wanted: 'true',
    isGood: (value) => value === 'true',
    costs: 'a replica that was away learns of what it missed only by repair',
  },
]

function isAtMostMs(value: string, mostMs: number): boolean {
  const [, amount = '', unit = ''] = /^(\d+)(ms|s|m)?$/.exec(value) ?? []
  const factor = unit === 's' ? 1000 : unit === 'm' ? 60_000 : 1
  return amount !== '' && Number(amount) * factor <= mostMs
}

/** The settings of one node by their names. */
export type NodeSettings = ReadonlyMap<string, string>

/** What differs on some node; a setting that no node lists is passed over. */
export function findSettings(nodes: readonly NodeSettings[]): SettingFinding[] {
  return wantedSettings.flatMap(({ setting, wanted, isGood, costs }) => {
    const values = [...new Set(nodes.flatMap((node) => node.get(setting) ?? []))]
    return values.every(isGood) ? [] : [{ setting, values, wanted, costs }]
  })
}

/** What differs on the nodes that can be asked now, or `unreadable` where none lets us read. */
export async function observeSettings(
  cassandra: Pick<Cassandra, 'executeOnEach'>,
): Promise<SettingFinding[] | 'unreadable'> {
  const answers = await cassandra.executeOnEach('SELECT name, value FROM system_views.settings')
  const nodes = answers.filter((rows) => rows.length > 0).map(settingsOf)
  return nodes.length === 0 ? 'unreadable' : findSettings(nodes)
}

function settingsOf(rows: readonly Row[]): NodeSettings {
  return new Map(
    rows.flatMap(({ name, value }) =>
      typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
    ),
  )
}
