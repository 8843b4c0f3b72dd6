// Collects the observed state of one CodePool: from caches, and from the API server only for what
// no cache contains. It makes no decision.
import type { ObservedJob, ObservedPool, Problem } from '../../codes/observed-state.ts'
import type { KubeApi } from '../api.ts'
import { hasStatus } from '../kube-error.ts'
import type { ObjectCache } from '../object-cache.ts'
import { type KubeObject, keyOf, pathOf } from '../objects.ts'
import type { CodePool } from './code-pool.ts'
import { NOT_STARTED_REASONS, readPodProblem } from './pod-problem.ts'
import {
  inputsHashOf,
  isProblem,
  jobNameOf,
  JOBS,
  type PodTemplate,
  type RefillJob,
  trimJob,
} from './refill-jobs.ts'
import { degradedOf, historyOf } from './read-status.ts'

/** The sources of the observed state. */
export interface ObserveDeps {
  readonly api: KubeApi
  /** Jobs of the CodePool's namespace, indexed by the uid of the CodePool. */
  readonly jobs: Pick<ObjectCache<RefillJob>, 'listBy'>
  /** CodePools of all namespaces, indexed by the pool's name in the store. */
  readonly pools: Pick<ObjectCache<CodePool>, 'listBy'>
  readonly template: () => PodTemplate | Problem
  /** Prefix of owners in the store, for stores that several clusters share. */
  readonly ownerPrefix: string
  readonly wallMs: () => number
}

/** Annotation: the owner that the operator allows this CodePool to replace. */
const REPLACES = 'curtail.dev/replaces-owner'
/** If a pod is not ready after this time, its problem is read. */
const START_MS_MAX = 10_000

/** The name of the pool in the store. */
export function storeNameOf({ metadata, spec }: CodePool): string {
  return spec.storeName ?? keyOf({ metadata })
}

/** The name of a CodePool as an owner in the store. */
export function ownerOf(pool: CodePool, prefix: string): string {
  return `${prefix}${keyOf(pool)}`
}

/** Observes a CodePool, but not its level in the store. Throws KubeError. */
export async function observe(
  deps: ObserveDeps,
  pool: CodePool,
  signal: AbortSignal,
): Promise<Omit<ObservedPool, 'stored'>> {
  const { spec, metadata } = pool
  const storeName = storeNameOf(pool)
  const template = deps.template()
  const history = historyOf(pool)
  const jobs = await observeJobs(deps, pool, signal)
  return {
    spec: {
      lowWater: spec.lowWater,
      target: spec.target,
      headroomHours: spec.headroomHours ?? null,
      isPaused: spec.paused,
    },
    self: ownerOf(pool, deps.ownerPrefix),
    mayReplace: metadata.annotations?.[REPLACES] ?? null,
    conflictingOwner: olderOwnerOf(deps, pool),
    inputs: isProblem(template) ? template : inputsHashOf(pool, { storeName, template }),
    jobs,
    history,
  }
}

/** An older CodePool of the same pool; `null` if this is the oldest, which owns the pool. */
function olderOwnerOf({ pools }: ObserveDeps, pool: CodePool): string | null {
  const ageOf = ({ metadata }: KubeObject) => `${metadata.creationTimestamp} ${metadata.uid}`
  const older = pools
    .listBy(storeNameOf(pool))
    .filter((other) => other.metadata.uid !== pool.metadata.uid && ageOf(other) < ageOf(pool))
  return older[0] === undefined ? null : keyOf(older[0])
}

async function observeJobs(
  deps: ObserveDeps,
  pool: CodePool,
  signal: AbortSignal,
): Promise<ObservedJob[]> {
  const cached = deps.jobs.listBy(pool.metadata.uid)
  const { started, last } = historyOf(pool)
  const newest = Math.max(last?.refill ?? 0, ...cached.map(({ refill }) => refill))
  // A started Job that is not in the cache is too new for the cache, or has been deleted.
  const missing =
    started > newest ? await readJob(deps, pool, { refill: started, signal }) : undefined
  const jobs = missing === undefined ? cached : [...cached, missing]
  const recorded = last?.refill ?? 0
  const reported = reportedProblemOf(pool)
  return Promise.all(jobs.map((job) => observeJob(deps, { job, recorded, reported, signal })))
}

async function readJob(
  { api }: ObserveDeps,
  pool: CodePool,
  { refill, signal }: { refill: number; signal: AbortSignal },
): Promise<RefillJob | undefined> {
  const { namespace } = pool.metadata
  const path = pathOf(JOBS, { namespace, name: jobNameOf(pool, refill) })
  try {
    return trimJob((await api.call({ method: 'GET', path, signal })) as KubeObject)
  } catch (error) {
    if (hasStatus(error, 404)) return undefined
    throw error
  }
}

/** The reported problem of a pod; `null` if the status reports none. */
function reportedProblemOf({ status }: CodePool): Problem | null {
  const degraded = degradedOf(status)
  if (degraded?.status !== 'True' || !NOT_STARTED_REASONS.has(degraded.reason)) return null
  return { reason: degraded.reason, message: degraded.message }
}

interface JobContext {
  readonly job: RefillJob
  /** The last refill whose outcome is in the status. */
  readonly recorded: number
  readonly reported: Problem | null
  readonly signal: AbortSignal
}

async function observeJob(
  { api, wallMs }: ObserveDeps,
  { job, recorded, reported, signal }: JobContext,
): Promise<ObservedJob> {
  const { metadata, refill, inputs, state, startedMs, finishedMs, isReady, failure } = job
  const { name, namespace } = metadata
  const isNewFailure = state === 'failed' && refill > recorded
  const isSlow = state === 'running' && !isReady && wallMs() - startedMs > START_MS_MAX
  const current =
    isNewFailure || isSlow ? await readPodProblem(api, { namespace, job: name, signal }) : null
  // A new pod has no problem at first: the reported one is kept until the pod is ready.
  const previous = isSlow ? reported : null
  const jobFailure = failure === null ? null : { reason: 'RefillFailed', message: failure }
  return {
    name,
    refill,
    inputs,
    state,
    isDeleting: metadata.deletionTimestamp !== undefined,
    startedMs,
    finishedMs,
    problem: current ?? previous ?? jobFailure,
  }
}
