// The blocked targets of a process: reads the files of BLOCKED_TARGETS, and reloads them when they
// change.
import { fileSettings } from '../../config/config.ts'
import { checkList } from '../../process/check-list.ts'
import type { Stop } from '../../process/stop.ts'
import { type WatchedListOptions, watchList } from '../../process/watched-list.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { blockedTargetsSetting } from '../settings.ts'
import { type BlockedChecks, createBlockedChecks, type VersionedList } from './blocked-checks.ts'
import { createBlockedTargetsLoader } from './load-blocked-targets.ts'

export type { BlockedChecks } from './blocked-checks.ts'

/** The log, the metrics and the stop hook of the process. */
export interface BlockedTargetsDeps {
  readonly log: WatchedListOptions<unknown>['log']
  readonly metrics: Pick<Metrics, 'listEntries' | 'listFaults' | 'blocked'>
  /** Registers a function that is called when the process stops. */
  onStop(stop: Stop): void
}

const SUFFIX = '.txt'

/** Validates the files of BLOCKED_TARGETS. */
export const blockedTargetsFiles = fileSettings(
  { BLOCKED_TARGETS: blockedTargetsSetting },
  async ({ BLOCKED_TARGETS: path }) => {
    const loader = createBlockedTargetsLoader()
    try {
      const load = loader.load.bind(loader)
      await checkList('BLOCKED_TARGETS', { path, suffix: SUFFIX, load })
    } finally {
      await loader.stop()
    }
  },
)

/** Loads the files at `path`. Resolves after the first load, even if it failed. */
export async function openBlockedTargets(
  path: string | undefined,
  deps: BlockedTargetsDeps,
): Promise<BlockedChecks> {
  const { log, metrics } = deps
  const loader = createBlockedTargetsLoader()
  let loads = 0
  const { current, stop } = await watchList<VersionedList | undefined>({
    name: 'blocked-targets',
    path,
    suffix: SUFFIX,
    empty: undefined,
    async load(files) {
      const { value, ...loaded } = await loader.load(files)
      loads++
      return { ...loaded, value: value && { has: value.has, version: loads } }
    },
    log,
    metrics,
  })
  deps.onStop(async () => {
    await Promise.all([loader.stop(), stop()])
  })
  return createBlockedChecks(current, metrics)
}
