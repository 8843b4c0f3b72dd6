// All that is read of one CodePool before anything is decided: from caches, and from the API server
// only where a cache cannot know. Decides nothing.
import type { PoolSight, SeenJob } from '../../codes/refill-sight.ts'
import type { KubeApi } from '../api.ts'
import { isStatus } from '../kube-error.ts'
import type { ObjectCache } from '../object-cache.ts'
import { type KubeObject, keyOf, pathOf } from '../objects.ts'
import type { CodePool } from './code-pool.ts'
import type { Levels } from './levels.ts'
import { NOT_BEGUN, readPodTrouble } from './pod-trouble.ts'
import {
  inputsOf,
  isTrouble,
  jobNameOf,
  JOBS,
  type PodTemplate,
  type RefillJob,
  trimJob,
} from './refill-jobs.ts'
import type { Trouble } from '../../codes/refill-sight.ts'
import { degradedOf, historyOf } from './read-status.ts'

/** What is observed with. */
export interface ObserveDeps {
  readonly api: KubeApi
  /** Of the CodePool's namespace; by the uid of the CodePool. */
  readonly jobs: Pick<ObjectCache<RefillJob>, 'listBy'>
  /** Of every namespace; by the pool's name in the store. */
  readonly pools: Pick<ObjectCache<CodePool>, 'listBy'>
  readonly levels: Pick<Levels, 'get'>
  readonly template: () => PodTemplate | Trouble
  /** What owners of pools in the store begin with, where several clusters share it. */
  readonly ownerPrefix: string
  readonly wallMs: () => number
}

/** An owner whose place a CodePool may take, as its operator says. */
const REPLACES = 'curtail.dev/replaces-owner'
/** A pod that does not run after so long is asked why. */
const BEGIN_MS_MAX = 10_000

/** The name of a CodePool's pool in the store. */
export function storeNameOf({ metadata, spec }: CodePool): string {
  return spec.storeName ?? keyOf({ metadata })
}

/** The name by which a CodePool owns its pool. */
export function ownerOf(pool: CodePool, prefix: string): string {
  return `${prefix}${keyOf(pool)}`
}

/** Sees all of a CodePool but its level in the store. Throws KubeError. */
export async function observe(
  deps: ObserveDeps,
  pool: CodePool,
  signal: AbortSignal,
): Promise<Omit<PoolSight, 'stored'>> {
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
    rival: rivalOf(deps, pool),
    inputs: isTrouble(template) ? template : inputsOf(pool, { storeName, template }),
    jobs,
    history,
  }
}

/** The older of two CodePools has the pool. */
function rivalOf({ pools }: ObserveDeps, pool: CodePool): string | null {
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
): Promise<SeenJob[]> {
  const cached = deps.jobs.listBy(pool.metadata.uid)
  const { begun, last } = historyOf(pool)
  const newest = Math.max(last?.refill ?? 0, ...cached.map(({ refill }) => refill))
  // One was begun of which the cache knows nothing: it is new, or somebody has removed it.
  const missing = begun > newest ? await readJob(deps, pool, { refill: begun, signal }) : undefined
  const jobs = missing === undefined ? cached : [...cached, missing]
  const known = last?.refill ?? 0
  return Promise.all(jobs.map((job) => seeJob(deps, { job, known, told: toldOf(pool), signal })))
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
    if (isStatus(error, 404)) return undefined
    throw error
  }
}

/** Why a pod does not begin, as it was told; `null` where that was not told. */
function toldOf({ status }: CodePool): Trouble | null {
  const degraded = degradedOf(status)
  if (degraded?.status !== 'True' || !NOT_BEGUN.has(degraded.reason)) return null
  return { reason: degraded.reason, message: degraded.message }
}

interface GivenJob {
  readonly job: RefillJob
  /** The last refill whose end is written down. */
  readonly known: number
  readonly told: Trouble | null
  readonly signal: AbortSignal
}

async function seeJob(
  { api, wallMs }: ObserveDeps,
  { job, known, told, signal }: GivenJob,
): Promise<SeenJob> {
  const { metadata, refill, inputs, state, startedMs, finishedMs, isReady, failure } = job
  const { name, namespace } = metadata
  const isNews = state === 'failed' && refill > known
  const isSlow = state === 'running' && !isReady && wallMs() - startedMs > BEGIN_MS_MAX
  const asked =
    isNews || isSlow ? await readPodTrouble(api, { namespace, job: name, signal }) : null
  // A new pod says nothing at first: what was told of the one before it stands until one runs.
  const before = isSlow ? told : null
  const said = failure === null ? null : { reason: 'RefillFailed', message: failure }
  return {
    name,
    refill,
    inputs,
    state,
    isDeleting: metadata.deletionTimestamp !== undefined,
    startedMs,
    finishedMs,
    trouble: asked ?? before ?? said,
  }
}
