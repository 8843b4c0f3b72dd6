// The controller of operator lists: after each change of a list, the leader annotates the pods that
// mount it, so that the kubelets update the mounted files immediately. Without the annotation, they
// do so within about 90 s.
import type { Process } from '../../process/open-process.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { type BackOffBounds, createBackOff, WATCH_BACK_OFF } from '../back-off.ts'
import { reportReads } from '../report-reads.ts'
import type { Controller } from '../run-controllers.ts'
import {
  completesWithin,
  pauseFor,
  type Scheduler,
  systemScheduler,
  untilAborted,
} from '../scheduler.ts'
import { createPodAnnotator, type PodAnnotator } from './annotate-pods.ts'
import { type ListSyncConfig, type ListSyncOptions, listSyncOptionsOf } from './settings.ts'
import { type ListWatch, watchLists, type WatchListsOptions } from './watch-lists.ts'

/** Dependencies of the controller. */
export interface ListControllerDeps
  extends ListSyncOptions, Pick<WatchListsOptions, 'namespace' | 'onState'> {
  /** Rejects writes unless this replica leads. */
  readonly api: KubeApi
  readonly scheduler: Scheduler
  readonly random: () => number
  readonly metrics: Metrics
  readonly log: Log
}

/** The controller. */
export interface ListController extends Controller {
  /** Whether a watch hangs: only a restart helps. */
  readonly isStuck: () => boolean
}

/** Changes within this time are handled together: a command may change several objects. */
const DEBOUNCE_MS = 100
/**
 * The annotations after a change. A kubelet has its own watch of each object, which may lag:
 * usually by less than 1.5 s, but by up to the kubelet's back-off after a fault of the API server.
 */
const STAGES = [
  { afterMs: 0, suffix: '' },
  { afterMs: 1500, suffix: '.confirmed' },
  { afterMs: 35_000, suffix: '.final' },
]
/** Lower than that of other watches, because only the leader watches, and only a few objects. */
const LIST_BACK_OFF: BackOffBounds = { ...WATCH_BACK_OFF, maxMs: 2000 }
const FAILED_BACK_OFF: BackOffBounds = { initialMs: 200, maxMs: 5000, resetAfterMs: 30_000 }
/** Maximum time for which an unreadable list delays the changes of the others. */
const SYNC_MS_MAX = 10_000

/** Creates the controller of a process; `undefined` if its settings name no pods. */
export function openListController(
  process: Pick<Process, 'log' | 'metrics' | 'health'> & { readonly config: ListSyncConfig },
  { api, namespace }: Pick<ListControllerDeps, 'api' | 'namespace'>,
): ListController | undefined {
  const { config, log, metrics } = process
  const options = listSyncOptionsOf(config)
  if (options === undefined) return undefined
  const onState = reportReads(process, () => undefined)
  const given = { ...options, api, namespace, log, metrics, onState }
  return createListController({ ...given, scheduler: systemScheduler, random: Math.random })
}

/** Creates the controller; it is not started. */
export function createListController(deps: ListControllerDeps): ListController {
  let watch: ListWatch | undefined
  return {
    watch: () => Promise.resolve(), // a replica on standby needs no versions
    lead: async (signal) => {
      const changes = createChanges()
      const lists = watchLists({
        ...deps,
        backOff: LIST_BACK_OFF,
        onChange: changes.record,
        onState(resource, failure) {
          deps.onState(resource, failure)
          if (lists.unsynced().length === 0) changes.markSynced()
        },
      })
      watch = lists
      const watching = lists.run(signal)
      const isSynced = Promise.race([changes.synced, untilAborted(signal)])
      if (!(await completesWithin(deps.scheduler, SYNC_MS_MAX, isSynced)))
        deps.log.warn({ objects: lists.unsynced() }, 'operator lists not read yet: retrying')
      await Promise.all([watching, keepAnnotated(deps, { lists, changes }, signal)])
    },
    updateMetrics: () => undefined,
    isStuck: () => watch?.isStuck() === true,
  }
}

/** The changes of the lists since `next` was last called. */
function createChanges() {
  const { promise: synced, resolve } = Promise.withResolvers<undefined>()
  let change = new AbortController()
  return {
    synced,
    markSynced() {
      resolve(undefined)
    },
    record: () => {
      change.abort()
    },
    /** Returns a signal that aborts at the next change. */
    next: (): AbortSignal => {
      change = new AbortController()
      return change.signal
    },
  }
}

/** Annotates the pods at the start and after each change, until `signal` aborts. */
async function keepAnnotated(
  deps: ListControllerDeps,
  given: { readonly lists: ListWatch; readonly changes: ReturnType<typeof createChanges> },
  signal: AbortSignal,
): Promise<void> {
  const { lists, changes } = given
  const annotator = createPodAnnotator(deps)
  const isStopping = () => signal.aborted
  while (!isStopping()) {
    await pauseFor(deps.scheduler, DEBOUNCE_MS, signal)
    const until = AbortSignal.any([signal, changes.next()])
    const version = lists.version()
    await annotateInStages(deps, { annotator, version, until }, signal)
    await untilAborted(until)
  }
}

/**
 * Annotates the pods with the value of each stage. A pod that has the value of a later stage keeps
 * it, so that a new leader continues from the stage of the previous one. Retries until every pod
 * has the last value; `until` aborts the pauses, but not the attempts, so that every pod is
 * annotated even under constant changes.
 */
async function annotateInStages(
  deps: ListControllerDeps,
  given: {
    readonly annotator: PodAnnotator
    readonly version: string
    readonly until: AbortSignal
  },
  signal: AbortSignal,
): Promise<void> {
  const { scheduler, random, log } = deps
  const { annotator, version, until } = given
  const backOff = createBackOff(FAILED_BACK_OFF, { scheduler, random })
  const startedMs = scheduler.nowMs()
  const elapsedMs = () => scheduler.nowMs() - startedMs
  while (!until.aborted) {
    const stage = STAGES.findLastIndex(({ afterMs }) => afterMs <= elapsedMs())
    const [value = version, ...later] = STAGES.slice(stage).map(({ suffix }) => version + suffix)
    const { pods, isComplete } = await annotator.annotate({ value, later }, signal)
    if (isComplete && stage > 0)
      log.info({ annotation: value, pods }, 'pods annotated with the version of the operator lists')
    const next = STAGES[stage + 1]
    if (isComplete && next === undefined) return
    // A pod that fails does not delay the next stage of the others.
    const untilNextMs = next === undefined ? Infinity : next.afterMs - elapsedMs()
    const retryMs = isComplete ? Infinity : backOff.nextMs()
    await pauseFor(scheduler, Math.max(0, Math.min(untilNextMs, retryMs)), until)
  }
}
