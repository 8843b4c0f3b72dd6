// Resets the counters of the rules that a descriptor matches, for an operator.
import { planChecks } from '../../limits/plan-checks.ts'
import type { CounterStore } from '../../limits/counter-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { splitValues } from '../stats/split-values.ts'
import type { DenyCache } from './deny-cache.ts'
import type { LocalShares } from './local-shares.ts'
import type { ExplainLimitsDeps, ExplainRequest } from './explain-limits.ts'

/** Dependencies of a reset. */
export interface ResetLimitsDeps extends Pick<ExplainLimitsDeps, 'rules' | 'options'> {
  readonly store: Pick<CounterStore, 'reset'>
  readonly shares: Pick<LocalShares, 'reset'>
  readonly denyCache: Pick<DenyCache, 'invalidate'> | undefined
  readonly log: Pick<Log, 'warn'>
}

/**
 * Resets the counters of a descriptor; resolves to the paths of their rules, empty if none matches.
 * Other processes keep denials in their deny caches for at most 1 s, and their local shares until
 * the store next reports. Throws StoreError.
 */
export type ResetLimits = (request: ExplainRequest) => Promise<readonly string[]>

/** Creates the use case. */
export function createResetLimits(deps: ResetLimitsDeps): ResetLimits {
  return async ({ domain, descriptor }) => {
    const request = { domain, descriptors: [descriptor], hits: 1 }
    const { checks } = planChecks(deps.rules(), request, deps.options)
    const updates = checks.map(({ update }) => update)
    const record = (message: string, fields: { readonly err?: unknown } = {}) => {
      for (const { rule, values } of checks) {
        const counter = { domain, rule: rule.path, name: rule.name, values: splitValues(values) }
        deps.log.warn({ ...counter, ...fields }, message)
      }
    }
    try {
      await deps.store.reset(updates)
    } catch (err) {
      record('the reset of a counter by an operator failed: it may have been reset anyway', { err })
      throw err
    } finally {
      // While the store is unavailable, this process decides by its own counters.
      await deps.shares.reset(updates)
      for (const { key } of updates) deps.denyCache?.invalidate(key)
    }
    record('counter reset by an operator')
    return checks.map(({ rule }) => rule.path)
  }
}
