// Checks new links and redirects against the list of blocked targets that is in use.
import type { BlockedTargets } from '../../links/blocked-targets.ts'
import type { Target } from '../../links/decide-redirect.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** The checks. `linkCreationCheck` and `redirectCheck` also count the targets that they block. */
export interface BlockedChecks {
  /**
   * Returns a function that returns `true` if the target of a new link is blocked. Imported links
   * are not checked, but their redirects are.
   */
  linkCreationCheck(): (longUrl: string) => boolean
  /**
   * Returns a function that returns `true` if the target of a redirect is blocked. If the list
   * allows the target, the function stores the version of the list in the target object. The next
   * check is then usually the comparison of two numbers: frequently used links stay in memory as
   * this object, and the target table (../target-table.ts), which creates an object for each read,
   * copies the version to the next object. The targets of links never change.
   */
  redirectCheck(): (target: Target) => boolean
  /** Whether a target is blocked; not counted. `undefined` if there are no entries. */
  has(longUrl: string): boolean | undefined
}

/** A list, with the number of the load that created it: equal numbers mean the same list. */
export interface VersionedList extends BlockedTargets {
  readonly version: number
}

/** Creates the checks; `current` returns the list in use, `undefined` if it has no entries. */
export function createBlockedChecks(
  current: () => VersionedList | undefined,
  metrics: Pick<Metrics, 'blocked'>,
): BlockedChecks {
  return {
    linkCreationCheck() {
      const counter = metrics.blocked.labels('create')
      return (longUrl) => {
        if (current()?.has(longUrl) !== true) return false
        counter.inc()
        return true
      }
    },
    redirectCheck() {
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
    has: (longUrl) => current()?.has(longUrl),
  }
}
