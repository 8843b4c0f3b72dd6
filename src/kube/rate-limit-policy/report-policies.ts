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
import { type AuditSums, createAuditSums } from './audit-sums.ts'
import { createLimiterCount, earliestAfter, LIMITER_RECONNECT_MS } from './limiter-count.ts'
import { decidePolicyStatus, type ObservedPolicy } from './policy-status.ts'
import { conditionOf, type ProgrammedRecord } from './programmed-record.ts'
import {
  RATE_LIMIT_POLICIES,
  type RateLimitPolicy,
  type RateLimitPolicyStatus,
} from './rate-limit-policy.ts'
import type { CompiledPolicy, RuleVersions } from './rule-versions.ts'
import type { PolicyWatch } from './watch-policies.ts'

/** A limiter that is connected to the controller. */
export interface ConnectedLimiter {
  readonly node: string
  readonly address: string
  /** The version that it accepted last; empty: none. */
  readonly active: string
  /** The last sent version, if the limiter rejected it. */
  readonly rejected: { readonly version: string; readonly message: string } | undefined
}

/** Dependencies of the reports. */
export interface ReportDeps {
  readonly api: Pick<KubeApi, 'call'>
  readonly policies: Pick<PolicyWatch, 'list' | 'get' | 'replace'>
  readonly versions: RuleVersions
  readonly limiters: () => readonly ConnectedLimiter[]
  /** What statuses have reported since this process started. */
  readonly programmed: ProgrammedRecord
  readonly events: Pick<EventRecorder, 'emit'>
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** Reports of the leader. */
export interface PolicyReports {
  /** The keys of policies whose status must be written: at most OUTDATED_MAX. */
  readonly outdated: () => readonly string[]
  /** Writes the status of a policy. Throws KubeError. */
  readonly write: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
  /** When more statuses must be written even if nothing happens; `undefined`: never. */
  readonly nextChangeMs: () => number | undefined
  /** Adds what limiters report. Returns whether a status must be written. */
  readonly addAudit: AuditSums['add']
  /** Records that a connected limiter with this active version stops: it does not reconnect. */
  readonly leave: (active: string) => void
  /** Numbers of limiters: with the newest version, with another one, and that may reconnect. */
  readonly counts: () => Readonly<Record<'current' | 'outdated' | 'missing', number>>
}

/** Maximum length of `outdated`; the namespaces take turns, so that one cannot fill it. */
const OUTDATED_MAX = 200
/** If more are outdated, they are compared after this time, unless a status changes earlier. */
const NEXT_OUTDATED_MS = 5000

/** Creates the reports of a process that has just become the leader. */
export function createPolicyReports(deps: ReportDeps): PolicyReports {
  const { policies, nowMs } = deps
  const limiters = observeLimiters(deps)
  const reportChange = createChangeReport(deps)
  const audits = createAuditSums(deps)
  const statusOf = createStatusDecision(deps, { limiters, audits })
  let moreAtMs: number | undefined
  return {
    outdated() {
      limiters.observe()
      const turns = new Map<string, string[]>()
      for (const policy of policies.list()) {
        const { namespace } = policy.metadata
        const keys = turns.get(namespace) ?? []
        turns.set(namespace, keys)
        if (keys.length > OUTDATED_MAX) continue
        const status = statusOf(policy)
        if (status !== undefined && !isSameStatus(policy.status, status)) keys.push(keyOf(policy))
      }
      const keys = interleave([...turns.values()])
      moreAtMs = keys.length > OUTDATED_MAX ? nowMs() + NEXT_OUTDATED_MS : undefined
      return keys.slice(0, OUTDATED_MAX)
    },
    async write(key, signal) {
      limiters.observe()
      const policy = policies.get(key)
      const status = policy && statusOf(policy)
      if (policy === undefined || status === undefined) return {}
      if (isSameStatus(policy.status, status)) return {}
      // Read before the write: during it, the limiters may accept another version, and the watch
      // may deliver this status.
      const version = deps.limiters().find(({ active }) => active !== '')?.active
      deps.programmed.note(policy)
      const wasProgrammed = deps.programmed.has(policy.metadata.uid, status)
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
      reportChange(policy, status, { version, wasProgrammed })
      return {}
    },
    nextChangeMs: () =>
      earliestAfter(nowMs(), [limiters.nextChangeMs(), audits.nextDueMs(), moreAtMs]),
    addAudit: audits.add,
    leave: limiters.leave,
    counts: limiters.counts,
  }
}

/** The first key of each list, then the second of each, and so on. */
function interleave(lists: readonly (readonly string[])[]): string[] {
  return lists
    .flatMap((keys) => keys.map((key, at) => ({ key, at })))
    .sort((a, b) => a.at - b.at)
    .map(({ key }) => key)
}

/**
 * Decides the status of a policy; `undefined` if the current generation is not compiled yet, or if
 * nothing has changed since a decision was equal to the status.
 */
function createStatusDecision(
  { versions, wallMs }: Pick<ReportDeps, 'versions' | 'wallMs'>,
  { limiters, audits }: { readonly limiters: ObservedLimiters; readonly audits: AuditSums },
) {
  /** Objects whose status was equal to the decided one, with what it was decided from. */
  const equal = new WeakMap<RateLimitPolicy, { compiled: CompiledPolicy; state: string }>()
  return (policy: RateLimitPolicy): RateLimitPolicyStatus | undefined => {
    const { uid, generation = 0 } = policy.metadata
    const compiled = versions.get(keyOf(policy))
    if (compiled?.uid !== uid || compiled.generation !== generation) return undefined
    const { outcome, active, accepted, since } = compiled
    const observed = {
      ...limiters.stateFor(since),
      audit: audits.statusOf(policy, compiled),
    }
    const state = active === undefined ? '' : JSON.stringify(observed)
    const before = equal.get(policy)
    if (before?.compiled === compiled && before.state === state) return undefined
    const status = decidePolicyStatus(policy, {
      ...{ outcome, accepted, activeGeneration: active?.generation, nowMs: wallMs() },
      ...observed,
    })
    if (isSameStatus(policy.status, status)) equal.set(policy, { compiled, state })
    return status
  }
}

interface ObservedLimiters {
  readonly observe: () => void
  readonly leave: PolicyReports['leave']
  /** The state of the limiters for a policy that every version since number `since` contains. */
  readonly stateFor: (
    since: number,
  ) => Pick<ObservedPolicy, 'active' | 'total' | 'isRejected' | 'expected'>
  readonly counts: PolicyReports['counts']
  readonly nextChangeMs: () => number | undefined
}

/** Observes the limiters of a process that has just become the leader. */
function observeLimiters(deps: ReportDeps): ObservedLimiters {
  const { versions, nowMs } = deps
  const count = createLimiterCount()
  const logRejections = createRejectionLog(deps)
  const settledAtMs = nowMs() + LIMITER_RECONNECT_MS
  /** The limiters of the previous leader: each active policy has their number in its status. */
  let expected = deps.policies
    .list()
    .reduce((total, { status }) => Math.max(total, status?.replicas?.total ?? 0), 0)
  /** The highest number of limiters with rules so far. */
  let peak = 0
  const observe = () => {
    const connected = deps.limiters()
    const counted = connected.map(({ active, rejected }) => ({
      version: versions.numberOf(active),
      rejected: rejected === undefined ? 0 : versions.numberOf(rejected.version),
    }))
    count.observe(counted, nowMs())
    peak = Math.max(peak, connected.filter(({ active }) => active !== '').length)
    logRejections(connected)
    return connected
  }
  return {
    observe,
    leave(active) {
      observe() // the limiter may have connected since the last call
      count.leave(versions.numberOf(active))
      if (active === '') return
      expected--
      peak-- // `expected - peak` is unchanged: as many limiters as before must still reconnect
    },
    stateFor(since) {
      const [active, total] = [count.active(since, nowMs()), count.total(nowMs())]
      const isRejected = active < total && count.isRejecting(since, nowMs())
      const isSettling = nowMs() < settledAtMs && peak < expected
      return { active, total, isRejected, expected: isSettling ? expected : 0 }
    },
    counts() {
      const connected = observe()
      const current = connected.filter(({ active }) => active === versions.newest()).length
      const missing = count.total(nowMs()) - connected.length
      return { current, outdated: connected.length - current, missing }
    },
    nextChangeMs: () => earliestAfter(nowMs(), [count.nextChangeMs(nowMs()), settledAtMs]),
  }
}

const REJECTIONS_MAX = 1000
const DETAIL_LENGTH_MAX = 500

/** Logs each rejected version once per limiter. */
function createRejectionLog({ log }: Pick<ReportDeps, 'log'>) {
  const logged = new LRUCache<string, true>({ max: REJECTIONS_MAX })
  return (limiters: readonly ConnectedLimiter[]): void => {
    for (const { node, address, rejected } of limiters) {
      if (rejected === undefined) continue
      const { version, message } = rejected
      const key = JSON.stringify([node, address, version])
      if (logged.has(key)) continue
      logged.set(key, true)
      const detail = message.slice(0, DETAIL_LENGTH_MAX).toWellFormed()
      log.warn({ limiter: node, address, version, detail }, 'limiter rejects the rules')
    }
  }
}

/** The reasons of conditions that no event reports. */
const QUIET_REASONS = ['Pending', 'NoLimiters', 'NotAccepted', 'Rejected']

interface Written {
  readonly version: string | undefined
  /** Whether an earlier status reported this generation as programmed. */
  readonly wasProgrammed: boolean
}

/** Reports the changes of conditions, except those that restarts of limiters cause. */
function createChangeReport(deps: Pick<ReportDeps, 'programmed' | 'events' | 'log'>) {
  return (policy: RateLimitPolicy, status: RateLimitPolicyStatus, written: Written): void => {
    const { metadata, status: before } = policy
    const { accepted, replicas } = status
    const { version, wasProgrammed } = written
    deps.programmed.note({ metadata, status })
    for (const type of ['Accepted', 'Programmed'] as const) {
      const current = conditionOf(status, type)
      if (current === undefined || QUIET_REASONS.includes(current.reason)) continue
      const last = conditionOf(before, type)
      const isSame = last?.observedGeneration === current.observedGeneration
      if (isSame && last?.reason === current.reason) continue
      if (current.reason === 'Programmed' && wasProgrammed) continue
      emitEvent(deps, policy, current)
      if (current.reason !== 'Programmed') continue
      const { namespace, name } = metadata
      const rules = { generation: accepted?.generation, version }
      const entry = { namespace, policy: name, ...rules, limiters: replicas?.active }
      deps.log.info(entry, 'policy programmed')
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
  const isNormal = reason === type
  const entry = { namespace, policy: name, reason, detail: note }
  if (status !== 'True') log.warn(entry, `policy not ${type.toLowerCase()}`)
  else if (!isNormal) log.warn(entry, 'policy lacks API keys')
  const action = type === 'Accepted' ? 'Compile' : 'Send'
  events.emit({ regarding, type: isNormal ? 'Normal' : 'Warning', reason, action, note })
}
