// The blocked targets of a process: reads the files of BLOCKED_TARGETS, and reloads them when they
// change.
import { fileSettings } from '../../config/config.ts'
import type { BlockedTargets } from '../../links/blocked-targets.ts'
import type { Target } from '../../links/decide-redirect.ts'
import { checkList } from '../../process/check-list.ts'
import type { Stop } from '../../process/stop.ts'
import { type WatchedListOptions, watchList } from '../../process/watched-list.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { blockedTargetsSetting } from '../settings.ts'
import { createBlockedTargetsLoader } from './load-blocked-targets.ts'

/** Creates the checks of targets. A check counts the targets that are blocked. */
export interface BlockedChecks {
  /** The check of new links. Imported links are not checked: their redirects are. */
  ofCreates(): (longUrl: string) => boolean
  /** The check of redirects. A target that it allows is not compared with the same list twice. */
  ofRedirects(): (target: Target) => boolean
}

/** The log and the metrics of blocked targets, and what stops the watch. */
export interface BlockedTargetsService {
  readonly log: WatchedListOptions<unknown>['log']
  readonly metrics: Pick<Metrics, 'listEntries' | 'listFaults' | 'blocked'>
  onStop(stop: Stop): void
}

/** A list, with the number of the load that created it. */
interface Version extends BlockedTargets {
  readonly version: number
}

const SUFFIX = '.txt'

/** The check of the files of BLOCKED_TARGETS. */
export const blockedTargetFiles = fileSettings(
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

/** Loads the files at `path`. Resolves after the first load, also if it has failed. */
export async function openBlockedTargets(
  path: string | undefined,
  service: BlockedTargetsService,
): Promise<BlockedChecks> {
  const { log, metrics } = service
  const loader = createBlockedTargetsLoader()
  let loads = 0
  const { current, stop } = await watchList<Version | undefined>({
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
  service.onStop(async () => {
    await Promise.all([loader.stop(), stop()])
  })
  return {
    ofCreates() {
      const counter = metrics.blocked.labels('create')
      return (longUrl) => {
        if (current()?.has(longUrl) !== true) return false
        counter.inc()
        return true
      }
    },
    ofRedirects() {
      const counter = metrics.blocked.labels('redirect')
      return (target) => {
        const list = current()
        if (list === undefined || target.allowedBy === list.version) return false
        if (list.has(target.longUrl)) {
          counter.inc()
          return true
        }
        target.allowedBy = list.version
        return false
      }
    },
  }
}
