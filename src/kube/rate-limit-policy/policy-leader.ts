// The leader of RateLimitPolicies: compiles them, sends the rules to the limiters, and reports the
// result in the status of each policy.
import type { CompiledPolicies } from '../../policies/compile.ts'
import type { Policy } from '../../policies/policy.ts'
import type { Log } from '../../telemetry/log.ts'
import { createDebounce } from './debounce.ts'
import { createPolicyReports, type PolicyReports, type ReportDeps } from './report-policies.ts'
import type { RuleVersions } from './rule-versions.ts'
import type { CompiledVersion, LimiterEvents, RulesPort } from './rules-port.ts'
import { scheduleReports } from './schedule-reports.ts'
import { createVersionSender, type SendVersionsDeps } from './send-versions.ts'
import { policyOf, type PolicyWatch } from './watch-policies.ts'

/** A burst of changes is compiled once, at the latest after COMPILE_MS_MAX. */
const COMPILE_QUIET_MS = 50
const COMPILE_MS_MAX = 500

/** What the leader does on events. */
export interface Leader {
  readonly onPolicyChanged: () => void
  readonly onStatusChanged: () => void
  readonly onLeave: LimiterEvents['onLeave']
  readonly onAudit: LimiterEvents['onAudit']
  /** Writes the status of a policy. */
  readonly write: PolicyReports['write']
  /** Stores the newest version. */
  readonly writeVersion: PolicyReports['write']
  readonly counts: PolicyReports['counts']
  readonly stop: () => void
}

/** Dependencies of the leader. */
export interface LeaderDeps
  extends Omit<SendVersionsDeps, 'enqueue' | 'port'>, Omit<ReportDeps, 'limiters' | 'nowMs'> {
  readonly policies: PolicyWatch
  readonly port: RulesPort
  /** Calls `write` with the key of a policy after a delay in milliseconds. */
  readonly enqueue: (key: string, ms: number) => void
  /** Calls `writeVersion` after a delay. */
  readonly enqueueVersion: (ms: number) => void
  readonly compile: (policies: readonly Policy[]) => CompiledPolicies
  readonly guard: ReturnType<typeof createGuard>
  readonly versions: RuleVersions
  readonly log: Log
}

/** Compiles and reports, each once for a burst of changes. */
export function createLeader(deps: LeaderDeps): Leader {
  const { policies, port, scheduler, compile, guard, versions } = deps
  const publish = (version: CompiledVersion) => {
    guard({ task: 'send-version', failed: 'version not sent to the limiters' }, () => {
      port.publish(version)
    })
  }
  const sender = createVersionSender({ ...deps, port: { publish }, enqueue: deps.enqueueVersion })
  const reports = createPolicyReports({
    ...deps,
    limiters: port.replicas,
    nowMs: scheduler.nowMs,
  })
  const compiling = createDebounce({
    scheduler,
    quietMs: COMPILE_QUIET_MS,
    msMax: COMPILE_MS_MAX,
    run() {
      if (!deps.isLeading()) {
        compiling.trigger() // the Lease may still be renewed
        return
      }
      const failed = 'policies not compiled: the limiters keep their rules'
      guard({ task: 'compile-policies', failed }, () => {
        const compilation = compile(inputsOf(policies, versions))
        versions.record(compilation.policies, compilation)
        const { version, resources } = compilation
        // Without the rest of `compilation`, because the limiters' port retains this object.
        sender.send({ version, resources }, versions.unreported(policies.list()))
      })
      reporting.trigger()
    },
  })
  const reporting = scheduleReports(deps, reports)
  return {
    onPolicyChanged: compiling.trigger,
    onStatusChanged: reporting.trigger,
    onLeave(active) {
      guard({ task: 'count-limiters', failed: 'stopping limiter still counts' }, () => {
        reports.leave(active)
      })
    },
    onAudit(counts) {
      guard({ task: 'audit-policies', failed: 'hits of policies in Audit not counted' }, () => {
        if (reports.addAudit(counts)) reporting.trigger()
        else reporting.recheckLater()
      })
    },
    write: reports.write,
    writeVersion: (_key, signal) => sender.write?.(signal) ?? Promise.resolve({}),
    counts: reports.counts,
    stop() {
      compiling.cancel()
      sender.stop()
      reporting.cancel()
    },
  }
}

/** Runs functions of the leader. An error is a defect: counted and logged, but not thrown. */
export function createGuard({ metrics, log }: Pick<LeaderDeps, 'metrics' | 'log'>) {
  return ({ task, failed }: { task: string; failed: string }, run: () => void): void => {
    try {
      run()
    } catch (err) {
      metrics.backgroundFailures.inc({ task })
      log.error({ err }, failed)
    }
  }
}

/** The policies as the compiler reads them. */
export function inputsOf(policies: PolicyWatch, versions: Pick<RuleVersions, 'lastAcceptedOf'>) {
  return policies.list().map((policy) => {
    const secrets = policies.secretsOf(policy.metadata.namespace)
    return policyOf(policy, secrets, versions.lastAcceptedOf(policy))
  })
}
