// Applies the planned steps of one CodePool. Steps are idempotent: an existing Job counts as
// created, a missing one as deleted.
import type { RefillStep } from '../../codes/observed-state.ts'
import type { KubeApi } from '../api.ts'
import { hasStatus, KubeError } from '../kube-error.ts'
import { type KubeObject, pathOf } from '../objects.ts'
import { applyStatus as applyStatusOf } from '../status.ts'
import { CODE_POOLS, type CodePool, type CodePoolStatus } from './code-pool.ts'
import { JOBS, type PodTemplate, renderJob } from './refill-jobs.ts'

/** A conditional write by which a CodePool becomes the owner of a pool in the store. */
export interface PoolOwnership {
  readonly pool: string
  readonly owner: string
  /** The owner that may be replaced; `null`: none. */
  readonly replaces: string | null
  readonly lowWater: number
  readonly target: number
}

/** Dependencies of a step. */
export interface ApplyDeps {
  readonly api: KubeApi
  /** Resolves to whether `owner` owns the pool afterwards. Throws if the store is unavailable. */
  readonly ownPool: (ownership: PoolOwnership) => Promise<boolean>
}

/** The context of a step. */
export interface StepContext {
  readonly pool: CodePool
  readonly storeName: string
  readonly owner: string
  readonly template: PodTemplate | undefined
  readonly signal: AbortSignal
}

/** Applies one step; returns whether to apply the next. Throws KubeError and StoreError. */
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
    case 'start': {
      if (template === undefined) return false
      const body = renderJob(pool, { ...step, storeName, template })
      const path = pathOf(JOBS, { namespace })
      await api.call({ method: 'POST', path, body, signal }).catch((error: unknown) => {
        // A quota that another client changes at the same time is a conflict, too.
        const exists = error instanceof KubeError && error.reason === 'AlreadyExists'
        if (!exists) throw error
      })
      return true
    }
    case 'cancel':
    case 'remove': {
      const path = pathOf(JOBS, { namespace, name: step.job })
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }
      await api.call({ method: 'DELETE', path, body, signal }).catch((error: unknown) => {
        if (hasStatus(error, 404)) return
        if (!(error instanceof KubeError)) throw error
        throw new KubeError(`Cannot delete the Job ${step.job}: ${error.message}`, error)
      })
      return true
    }
  }
}

/** Writes a status unless the CodePool has changed since `pool`. Throws KubeError. */
export function applyStatus(
  api: KubeApi,
  { pool, status, signal }: { pool: CodePool; status: CodePoolStatus; signal: AbortSignal },
): Promise<KubeObject> {
  return applyStatusOf(api, CODE_POOLS, { object: pool, status, signal })
}
