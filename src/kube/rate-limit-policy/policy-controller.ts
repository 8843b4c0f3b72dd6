// The controller of RateLimitPolicies: every replica watches them; the leader compiles them, sends
// the rules to the limiters, and reports the result in the status of each policy.
import { createCompiler } from '../../policies/compile.ts'
import type { DomainGrant } from '../../policies/policy.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import type { EventRecorder } from '../events.ts'
import type { KubeError } from '../kube-error.ts'
import { runWorkers, type WorkersOptions } from '../run-workers.ts'
import { completesWithin, type Scheduler, untilAborted } from '../scheduler.ts'
import { createWorkQueue } from '../work-queue.ts'
import { createDebounce } from './debounce.ts'
import { type LastVersionDeps, readAccepted } from './last-version.ts'
import { createGuard, createLeader, inputsOf, type Leader } from './policy-leader.ts'
import { createProgrammedRecord } from './programmed-record.ts'
import { createRuleVersions } from './rule-versions.ts'
import { openRulesPort, type RulesPortDeps } from './rules-port.ts'
import { affectsRules, type PolicyWatch, watchPolicies } from './watch-policies.ts'

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
  /** Called after each list and each opened watch of a namespace, and with each `failure`. */
  readonly onState: (resource: string, failure: KubeError | undefined) => void
}

/** The controller. */
export interface PolicyController {
  /** Watches until `signal` aborts. Rejects only on a defect. */
  readonly watch: (signal: AbortSignal) => Promise<void>
  /**
   * Serves the rules until `signal` aborts, but only once all policies and API keys are listed:
   * until then, limiters keep their last rules. Rejects only on a defect.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>
  /** Updates the metrics that are sampled. */
  readonly updateMetrics: () => void
  /** Whether a write or a watch hangs: only a restart helps. */
  readonly isStuck: () => boolean
}

/** The name of the controller and of its queue in metrics. */
const NAME = 'ratelimitpolicy'
const WORKERS = 4
/** Name and only key of the version's own queue: a version never waits for writes of statuses. */
const VERSION_NAME = 'ratelimitpolicy-version'
/** A replica on standby compiles too, so that its first version as the leader takes less time. */
const STANDBY_QUIET_MS = 5000
const STANDBY_MS_MAX = 60_000
/** A write is aborted after 60 s; one that runs for this time counts as stuck. */
const STUCK_WRITE_MS = 120_000
const UNSYNCED_WARNING_MS = 10_000
/** On stop: time for running writes, then for aborted ones, then for pending events. */
const DRAIN_MS_MAX = 1000
const ABORT_MS_MAX = 1000
const FLUSH_MS_MAX = 500

/** Creates the controller; it is not started. */
export function createPolicyController(deps: PolicyControllerDeps): PolicyController {
  const { scheduler, metrics, log } = deps
  const queues = createQueues(deps)
  const compile = createCompiler(deps.grants)
  const guard = createGuard(deps)
  const programmed = createProgrammedRecord()
  let leader: Leader | undefined
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<undefined>()
  const onState: PolicyControllerDeps['onState'] = (resource, failure) => {
    deps.onState(resource, failure)
    if (failure === undefined && policies.unsynced().length === 0) markSynced(undefined)
  }
  const onPolicyChanged = () => {
    if (leader === undefined) standby.trigger()
    else leader.onPolicyChanged()
  }
  const policies = watchPolicies(
    { ...deps, onState },
    (change) => {
      programmed.note(change.object)
      if (affectsRules(change)) onPolicyChanged()
      else leader?.onStatusChanged()
    },
    onPolicyChanged,
  )
  const standby = createDebounce({
    ...{ scheduler, quietMs: STANDBY_QUIET_MS, msMax: STANDBY_MS_MAX },
    run() {
      guard({ task: 'compile-policies', failed: 'policies not compiled on standby' }, () => {
        compile(inputsOf(policies, createRuleVersions()))
      })
    },
  })
  return {
    async watch(signal) {
      await policies.run(signal)
      standby.cancel()
    },
    async lead(signal) {
      await policies.refresh(signal) // the watches of a new leader may lag
      await untilSynced({ policies, synced, scheduler, log }, signal)
      const { store } = deps
      const stored = store && (await readAccepted({ ...deps, ...store }, signal))
      if (signal.aborted) return
      const versions = createRuleVersions(stored)
      standby.cancel()
      const port = openRulesPort(deps, {
        onChange: () => leader?.onStatusChanged(),
        onLeave: (active) => leader?.onLeave(active),
        onAudit: (counts) => leader?.onAudit(counts),
      })
      const given = { policies, port, compile, guard, versions, programmed }
      leader = createLeader({ ...deps, ...queues, ...given })
      leader.onPolicyChanged()
      const working = work(deps, signal, queues.withWriters(leader))
      await untilAborted(signal)
      leader.stop()
      leader = undefined
      queues.shutDown()
      await Promise.all([working, port.close()])
    },
    updateMetrics() {
      queues.updateMetrics()
      countConditions(metrics, policies)
      for (const [state, count] of Object.entries(leader?.counts() ?? {}))
        metrics.policyLimiters.set({ state }, count)
    },
    isStuck: () => queues.isStuck() || policies.isStuck(),
  }
}

/** The queue of policies whose status must be written, and that of the version. */
function createQueues({ scheduler, metrics }: Pick<PolicyControllerDeps, 'scheduler' | 'metrics'>) {
  const policies = createWorkQueue({ name: NAME, scheduler, metrics })
  const version = createWorkQueue({ name: VERSION_NAME, scheduler, metrics })
  const both = [policies, version]
  return {
    enqueue: policies.addAfter,
    enqueueVersion(ms: number) {
      version.addAfter(VERSION_NAME, ms)
    },
    withWriters: ({ write, writeVersion }: Pick<Leader, 'write' | 'writeVersion'>) => [
      { name: NAME, queue: policies, workers: WORKERS, reconcile: write },
      { name: VERSION_NAME, queue: version, workers: 1, reconcile: writeVersion },
    ],
    shutDown() {
      for (const queue of both) queue.shutDown()
    },
    updateMetrics() {
      for (const queue of both) queue.updateMetrics()
    },
    isStuck: () => both.some((queue) => queue.longestMs() > STUCK_WRITE_MS),
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

/** Writes statuses and versions until the queues are shut down, then drains the writes. */
async function work(
  deps: Pick<PolicyControllerDeps, 'scheduler' | 'metrics' | 'log' | 'events'>,
  signal: AbortSignal,
  all: readonly Pick<WorkersOptions, 'name' | 'queue' | 'workers' | 'reconcile'>[],
): Promise<void> {
  const { scheduler, log, events } = deps
  const aborting = new AbortController()
  const working = Promise.all(all.map((each) => runWorkers({ ...deps, ...each }, aborting.signal)))
  await untilAborted(signal)
  if (!(await completesWithin(scheduler, DRAIN_MS_MAX, working))) {
    aborting.abort()
    if (!(await completesWithin(scheduler, ABORT_MS_MAX, working)))
      log.warn("writes still running at the stop's deadline: abandoned")
  }
  if (!(await completesWithin(scheduler, FLUSH_MS_MAX, events.flush())))
    log.warn('events not written before the stop')
}
