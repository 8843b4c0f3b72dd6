// Carries out what was decided for one CodePool. Each step may be repeated: a Job that is there is
// as good as made, one that is gone as good as removed.
import type { RefillStep } from '../../codes/refill-sight.ts'
import { APPLY, type KubeApi } from '../api.ts'
import { isStatus } from '../kube-error.ts'
import { type KubeObject, pathOf } from '../objects.ts'
import { CODE_POOLS, type CodePool, type CodePoolStatus } from './code-pool.ts'
import { JOBS, type PodTemplate, renderJob } from './refill-jobs.ts'

/** A claim to a pool in the store. */
export interface PoolClaim {
  readonly pool: string
  readonly owner: string
  /** Who may stand there before us; `null` for nobody. */
  readonly replaces: string | null
  readonly lowWater: number
  readonly target: number
}

/** What is written with. */
export interface ApplyDeps {
  readonly api: KubeApi
  /** Whether the pool is ours now. Throws where the store does not answer. */
  readonly ownPool: (claim: PoolClaim) => Promise<boolean>
}

/** What a step needs of the CodePool. */
export interface StepContext {
  readonly pool: CodePool
  readonly storeName: string
  readonly owner: string
  readonly template: PodTemplate | undefined
  readonly signal: AbortSignal
}

/** Does one step; whether the next may be done. Throws KubeError, and what the store throws. */
export async function applyStep(
  { api, ownPool }: ApplyDeps,
  step: RefillStep,
  context: StepContext,
): Promise<boolean> {
  const { pool, storeName, owner, template, signal } = context
  const { namespace } = pool.metadata
  const { lowWater, target } = pool.spec
  switch (step.kind) {
    case 'own':
      return ownPool({ pool: storeName, owner, replaces: step.replaces, lowWater, target })
    case 'begin': {
      if (template === undefined) return false
      const body = renderJob(pool, { ...step, storeName, template })
      await api
        .call({ method: 'POST', path: pathOf(JOBS, { namespace }), body, signal })
        .catch(unless(409))
      return true
    }
    case 'cancel':
    case 'remove': {
      const path = pathOf(JOBS, { namespace, name: step.job })
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }
      await api.call({ method: 'DELETE', path, body, signal }).catch(unless(404))
      return true
    }
  }
}

function unless(status: number) {
  return (error: unknown) => {
    if (!isStatus(error, status)) throw error
  }
}

/** Writes a status over the very version that it was made from. Throws KubeError. */
export async function applyStatus(
  api: KubeApi,
  { pool, status, signal }: { pool: CodePool; status: CodePoolStatus; signal: AbortSignal },
): Promise<KubeObject> {
  const { name, namespace, resourceVersion } = pool.metadata
  const { apiVersion, kind } = CODE_POOLS
  return (await api.call({
    method: 'PATCH',
    path: pathOf(CODE_POOLS, { namespace, name, part: 'status' }),
    body: { apiVersion, kind, metadata: { name, namespace, resourceVersion }, status },
    ...APPLY,
    signal,
  })) as KubeObject
}
