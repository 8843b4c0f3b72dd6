// Reports the state of RateLimitPolicies: compares the status of each policy with the decided one,
// and writes those that differ, at a bounded rate.
import { LRUCache } from 'lru-cache'
import type { Log } from '../../telemetry/log.ts'
import type { KubeApi } from '../api.ts'
import type { NewCondition } from '../conditions.ts'
import type { EventRecorder } from '../events.ts'
import { hasStatus } from '../kube-error.ts'
import { keyOf } from '../objects.ts'
import type { ReconcileResult } from '../run-workers.ts'
import { applyStatus, isSameStatus } from '../status.ts'
import { createLimiterCount, LIMITER_RECONNECT_MS } from './limiter-count.ts'
import { decidePolicyStatus } from './policy-status.ts'
import {
  RATE_LIMIT_POLICIES,
  type RateLimitPolicy,
  type RateLimitPolicyStatus,
} from './rate-limit-policy.ts'
import type { RuleVersions } from './rule-versions.ts'
import type { PolicyWatch } from './watch-policies.ts'

/** A limiter that is connected to the controller. */
export interface ConnectedLimiter {
  readonly node: string
  readonly address: string
  /** The version that it accepted last; empty: none. */
  readonly active: string
  /** The version that it was sent last, if it rejected it. */
  readonly rejected: { readonly version: string; readonly message: string } | undefined
}

/** Dependencies of the reports. */
export interface ReportDeps {
  readonly api: Pick<KubeApi, 'call'>
  readonly policies: PolicyWatch
  readonly versions: RuleVersions
  readonly limiters: () => readonly ConnectedLimiter[]
  readonly events: EventRecorder
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** Reports of the leader. */
export interface PolicyReports {
  /** The keys of the policies whose status must be written. */
  readonly outdated: () => readonly string[]
  /** Writes the status of a policy. Throws KubeError. */
  readonly write: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
  /** When statuses can change although nothing happens; `undefined`: never. */
  readonly nextChangeMs: () => number | undefined
  /** Limiters that have the newest version, that have another one, and that left recently. */
  readonly counts: () => Readonly<Record<'current' | 'outdated' | 'missing', number>>
}

/** Creates the reports of a process that has just become the leader. */
export function createPolicyReports(deps: ReportDeps): PolicyReports {
  const { policies, versions, nowMs } = deps
  const count = createLimiterCount()
  const reportChange = createChangeReport(deps)
  const settledAtMs = nowMs() + LIMITER_RECONNECT_MS
  /** The highest number of limiters with rules so far. */
  let peak = 0
  const statusOf = (policy: RateLimitPolicy, connected: readonly ConnectedLimiter[]) => {
    const { uid, generation = 0 } = policy.metadata
    const compiled = versions.get(keyOf(policy))
    if (compiled?.uid !== uid || compiled.generation !== generation) return undefined
    const behind = connected.filter(({ active }) => versions.numberOf(active) < compiled.since)
    return decidePolicyStatus(policy, {
      outcome: compiled.outcome,
      active: connected.length - behind.length,
      total: count.total(nowMs()),
      rejection: rejectionOf(behind),
      isSettling: nowMs() < settledAtMs && peak < (policy.status?.replicas?.total ?? 0),
      nowMs: deps.wallMs(),
    })
  }
  const observe = () => {
    const connected = deps.limiters()
    count.observe(connected.length, nowMs())
    peak = Math.max(peak, connected.filter(({ active }) => active !== '').length)
    return connected
  }
  return {
    outdated() {
      const connected = observe()
      return policies.list().flatMap((policy) => {
        const status = statusOf(policy, connected)
        return status === undefined || isSameStatus(policy.status, status) ? [] : [keyOf(policy)]
      })
    },
    async write(key, signal) {
      const policy = policies.get(key)
      const status = policy && statusOf(policy, observe())
      if (policy === undefined || status === undefined) return {}
      if (isSameStatus(policy.status, status)) return {}
      try {
        const written = await applyStatus(deps.api, RATE_LIMIT_POLICIES, {
          object: policy,
          status,
          signal,
        })
        policies.replace(policy, written as RateLimitPolicy)
      } catch (error) {
        // Deleted or changed in the meantime: the watch delivers it, which causes another report.
        if (hasStatus(error, 404) || hasStatus(error, 409)) return {}
        throw error
      }
      reportChange(policy, status)
      return {}
    },
    nextChangeMs() {
      const next = [count.nextChangeMs(), settledAtMs].filter((ms) => ms !== undefined)
      const later = next.filter((ms) => ms > nowMs())
      return later.length === 0 ? undefined : Math.min(...later)
    },
    counts() {
      const connected = observe()
      const current = connected.filter(({ active }) => active === versions.newest()).length
      const missing = count.total(nowMs()) - connected.length
      return { current, outdated: connected.length - current, missing }
    },
  }
}

function rejectionOf(behind: readonly ConnectedLimiter[]): string | undefined {
  const limiter = behind.find(({ rejected }) => rejected !== undefined)
  if (limiter?.rejected === undefined) return undefined
  const { node, address, rejected } = limiter
  return `limiter ${node} at ${address} rejects the rules: ${rejected.message}`
}

/** The conditions of policies that no event reports. */
const QUIET_REASONS = ['Pending', 'NoLimiters', 'NotAccepted']
const PROGRAMMED_MAX = 10_000

/** Reports the changes of conditions; for limiters that restart, nothing is reported. */
function createChangeReport(deps: Pick<ReportDeps, 'events' | 'log'>) {
  /** The generation of each policy that has been programmed. */
  const programmed = new LRUCache<string, number>({ max: PROGRAMMED_MAX })
  return (policy: RateLimitPolicy, status: RateLimitPolicyStatus): void => {
    const { uid, generation = 0 } = policy.metadata
    const before = policy.status?.observedGeneration === generation ? policy.status : undefined
    const isProgrammed = (of: typeof before) => conditionOf(of, 'Programmed')?.status === 'True'
    if (isProgrammed(before)) programmed.set(uid, generation)
    const wasProgrammed = programmed.get(uid) === generation
    if (isProgrammed(status)) programmed.set(uid, generation)
    for (const type of ['Accepted', 'Programmed'] as const) {
      const current = conditionOf(status, type)
      if (current === undefined || QUIET_REASONS.includes(current.reason)) continue
      if (conditionOf(before, type)?.reason === current.reason) continue
      if (current.reason === 'Programmed' && wasProgrammed) continue
      emitEvent(deps, policy, current)
    }
  }
}

function emitEvent(
  { events, log }: Pick<ReportDeps, 'events' | 'log'>,
  { metadata: { namespace, name, uid } }: RateLimitPolicy,
  { type, status, reason, message: note }: NewCondition,
): void {
  const { apiVersion, kind } = RATE_LIMIT_POLICIES
  const regarding = { apiVersion, kind, namespace, name, uid }
  const isNormal = status === 'True'
  const entry = { namespace, policy: name, reason, detail: note }
  if (!isNormal) log.warn(entry, `policy not ${type.toLowerCase()}`)
  const action = type === 'Accepted' ? 'Compile' : 'Send'
  events.emit({ regarding, type: isNormal ? 'Normal' : 'Warning', reason, action, note })
}

function conditionOf(status: RateLimitPolicyStatus | undefined, type: string) {
  return status?.conditions?.find((condition) => condition.type === type)
}
