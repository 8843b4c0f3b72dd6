// The controller of RateLimitPolicies: every replica watches them; the leader compiles them, sends
// the rules to the limiters, and reports the result in the status of each policy.
import { createCompiler } from '../../policies/compile.ts'
import type { DomainGrant } from '../../policies/policy.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import type { EventRecorder } from '../events.ts'
import type { KubeError } from '../kube-error.ts'
import { runWorkers } from '../run-workers.ts'
import { completesWithin, type Scheduler, untilAborted } from '../scheduler.ts'
import { createWorkQueue } from '../work-queue.ts'
import { createDebounce } from './debounce.ts'
import { createLastVersion, type LastVersionDeps } from './last-version.ts'
import { createPolicyReports, type PolicyReports } from './report-policies.ts'
import { createRuleVersions } from './rule-versions.ts'
import {
  type CompiledVersion,
  type LimiterEvents,
  openRulesPort,
  type RulesPort,
  type RulesPortDeps,
} from './rules-port.ts'
import { scheduleReports } from './schedule-reports.ts'
import { affectsRules, policyOf, type PolicyWatch, watchPolicies } from './watch-policies.ts'

/** Dependencies of the controller. */
export interface PolicyControllerDeps extends Pick<RulesPortDeps, 'openServer' | 'onPort'> {
  /** Rejects writes unless this replica leads. */
  readonly api: KubeApi
  readonly grants: readonly DomainGrant[]
  /** Where the newest version is stored; `undefined`: it is not stored. */
  readonly store: Pick<LastVersionDeps, 'secret' | 'serialize'> | undefined
  readonly isLeading: () => boolean
  readonly events: EventRecorder
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly wallMs: () => number
  readonly metrics: Metrics
  readonly log: Log
  /** Called after each list and watch of a namespace; `failure` is undefined if it succeeded. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The controller. */
export interface PolicyController {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly watch: (signal: AbortSignal) => Promise<void>
  /**
   * Serves the rules until `signal` aborts, but not before all policies are listed: limiters keep
   * their last rules. Rejects only on a defect.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /** Updates the metrics that are sampled. */
  readonly updateMetrics: () => void
  /** Whether a write or a watch hangs because of a defect: only a restart helps. */
  readonly isStuck: () => boolean
}

/** The name of the controller and of its queue in metrics. */
const NAME = 'ratelimitpolicy'
/** The key of the stored version in the queue; those of policies contain a `/`. */
const VERSION_KEY = 'version'
const WORKERS = 4
/** A burst of changes is compiled once, at the latest after COMPILE_MS_MAX. */
const COMPILE_QUIET_MS = 50
const COMPILE_MS_MAX = 500
/** A write is aborted after 60 s; one that still runs after this time hangs. */
const STUCK_WRITE_MS = 120_000
const UNSYNCED_WARNING_MS = 10_000
/** On stop: time for running writes, then for aborted ones, then for pending events. */
const DRAIN_MS_MAX = 1000
const ABORT_MS_MAX = 1000
const FLUSH_MS_MAX = 500

/** Creates the controller; it is not started. */
export function createPolicyController(deps: PolicyControllerDeps): PolicyController {
  const { scheduler, metrics, log } = deps
  const queue = createWorkQueue({ name: NAME, scheduler, metrics })
  let leader: Leader | undefined
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<undefined>()
  const onState: PolicyControllerDeps['onState'] = (resource, failure) => {
    deps.onState(resource, failure)
    if (failure === undefined && policies.unsynced().length === 0) markSynced(undefined)
  }
  const policies = watchPolicies(
    { ...deps, onState },
    (change) => {
      if (affectsRules(change)) leader?.onPolicyChanged()
      else leader?.onStatusChanged()
    },
    () => leader?.onPolicyChanged(),
  )
  return {
    watch: policies.run,
    async lead(signal) {
      await policies.refresh(signal) // the watches of a new leader may lag
      await untilSynced({ policies, synced, scheduler, log }, signal)
      if (signal.aborted) return
      const port = openRulesPort(deps, {
        onChange: () => leader?.onStatusChanged(),
        onLeave: (active) => leader?.onLeave(active),
        onAudit: (counts) => leader?.onAudit(counts),
      })
      leader = createLeader({ ...deps, policies, port, enqueue: queue.addAfter })
      leader.onPolicyChanged()
      const working = work({ ...deps, queue, write: leader.write }, signal)
      await untilAborted(signal)
      leader.stop()
      leader = undefined
      queue.shutDown()
      await Promise.all([working, port.close()])
    },
    updateMetrics() {
      queue.updateMetrics()
      countConditions(metrics, policies)
      for (const [state, count] of Object.entries(leader?.counts() ?? {}))
        metrics.policyLimiters.set({ state }, count)
    },
    isStuck: () => queue.longestMs() > STUCK_WRITE_MS || policies.isStuck(),
  }
}

function countConditions({ policyConditions }: Metrics, policies: PolicyWatch): void {
  policyConditions.reset()
  for (const { type, status, reason } of policies
    .list()
    .flatMap((policy) => policy.status?.conditions ?? []))
    policyConditions.inc({ type, status, reason })
}

/** Waits until all policies are listed or `signal` aborts; warns if that takes long. */
async function untilSynced(
  given: {
    readonly policies: PolicyWatch
    readonly synced: Promise<unknown>
    readonly scheduler: Scheduler
    readonly log: Pick<Log, 'warn'>
  },
  signal: AbortSignal,
): Promise<void> {
  const { policies, synced, scheduler, log } = given
  const isDone = Promise.race([synced, untilAborted(signal)])
  if (await completesWithin(scheduler, UNSYNCED_WARNING_MS, isDone)) return
  const namespaces = policies.unsynced()
  log.warn({ namespaces }, 'no rules are sent until all RateLimitPolicies and API keys are listed')
  await isDone
}

interface Leader {
  readonly onPolicyChanged: () => void
  readonly onStatusChanged: () => void
  readonly onLeave: LimiterEvents['onLeave']
  readonly onAudit: LimiterEvents['onAudit']
  readonly write: PolicyReports['write']
  readonly counts: PolicyReports['counts']
  readonly stop: () => void
}

/** Compiles and reports, each once for a burst of changes. */
function createLeader(
  deps: PolicyControllerDeps & {
    readonly policies: PolicyWatch
    readonly port: RulesPort
    readonly enqueue: (key: string, ms: number) => void
  },
): Leader {
  const { policies, port, grants, scheduler } = deps
  const guard = createGuard(deps)
  const compile = createCompiler(grants)
  const outputs = createOutputs(deps)
  const versions = createRuleVersions()
  const reports = createPolicyReports({
    ...deps,
    versions,
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
        const given = policies.list().map((policy) => {
          const secrets = policies.secretsOf(policy.metadata.namespace)
          return policyOf(policy, secrets, versions.lastAcceptedOf(policy))
        })
        const compilation = compile(given)
        versions.record(compilation.policies, compilation)
        const { version, resources } = compilation
        outputs.publish({ version, resources }) // which keep this object
      })
      reporting.trigger()
    },
  })
  const reporting = scheduleReports(deps, reports)
  return {
    onPolicyChanged: compiling.trigger,
    onStatusChanged: reporting.trigger,
    onLeave(active) {
      guard({ task: 'count-limiters', failed: 'limiter that stops still counts' }, () => {
        reports.leave(active)
      })
    },
    onAudit(counts) {
      guard({ task: 'audit-policies', failed: 'hits of policies in Audit not counted' }, () => {
        if (reports.addAudit(counts)) reporting.trigger()
        else reporting.recheckLater()
      })
    },
    write: (key, signal) => outputs.write(key, signal) ?? reports.write(key, signal),
    counts: reports.counts,
    stop() {
      compiling.cancel()
      reporting.cancel()
    },
  }
}

/** Runs functions of the leader; an error is a defect that must not end it: counted and logged. */
function createGuard({ metrics, log }: Pick<PolicyControllerDeps, 'metrics' | 'log'>) {
  return ({ task, failed }: { task: string; failed: string }, run: () => void): void => {
    try {
      run()
    } catch (err) {
      metrics.backgroundFailures.inc({ task })
      log.error({ err }, failed)
    }
  }
}

/** Sends versions to the limiters, and stores them in the Secret if there is one. */
function createOutputs(
  deps: PolicyControllerDeps & {
    readonly port: RulesPort
    readonly enqueue: (key: string, ms: number) => void
  },
) {
  const { port, store } = deps
  const enqueue = (ms: number) => {
    deps.enqueue(VERSION_KEY, ms)
  }
  const stored = store && createLastVersion({ ...deps, ...store, enqueue })
  return {
    publish(rules: CompiledVersion) {
      port.publish(rules)
      stored?.record(rules)
    },
    /** Stores the newest version; `undefined` if the key is that of a policy. */
    write: (key: string, signal: AbortSignal) =>
      key === VERSION_KEY ? stored?.write(signal) : undefined,
  }
}

/** Writes statuses and versions until the queue is shut down, then drains the writes. */
async function work(
  deps: Pick<PolicyControllerDeps, 'scheduler' | 'metrics' | 'log' | 'events'> & {
    readonly queue: ReturnType<typeof createWorkQueue>
    readonly write: Leader['write']
  },
  signal: AbortSignal,
): Promise<void> {
  const { scheduler, log, events, write } = deps
  const aborting = new AbortController()
  const options = { ...deps, name: NAME, workers: WORKERS, reconcile: write }
  const working = runWorkers(options, aborting.signal)
  await untilAborted(signal)
  if (!(await completesWithin(scheduler, DRAIN_MS_MAX, working))) {
    aborting.abort()
    if (!(await completesWithin(scheduler, ABORT_MS_MAX, working)))
      log.warn("writes still running at the stop's deadline: abandoned")
  }
  if (!(await completesWithin(scheduler, FLUSH_MS_MAX, events.flush())))
    log.warn('events not written before the stop')
}
