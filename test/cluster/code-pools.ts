// A client for the release's CodePools in the test cluster: creates and changes them, reads their
// conditions and Jobs.
import { randomBytes } from 'node:crypto'
import type { KubeApi } from '../../src/kube/api.ts'
import { CODE_POOLS, type CodePool } from '../../src/kube/code-pool/code-pool.ts'
import { JOBS } from '../../src/kube/code-pool/refill-jobs.ts'
import { type KubeObject, pathOf } from '../../src/kube/objects.ts'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects } from './cluster.ts'
import { FULL_NAME, RELEASE } from './release.ts'

/** How long the controller may take to set a condition: some depend on a pod's status. */
const CONDITION_MS_MAX = 120_000

/** CodePools of the release's namespace. */
export interface CodePoolClient {
  readonly get: (name: string) => Promise<CodePool>
  readonly create: (name: string, spec: object) => Promise<void>
  /** Changes these fields of the spec. */
  readonly patch: (name: string, spec: object) => Promise<void>
  /** A condition as `STATUS REASON`. */
  readonly condition: (name: string, type: string) => Promise<string>
  /** Waits until a condition is `expected`. Throws the pool's status after the deadline. */
  readonly waitForCondition: (name: string, type: string, expected: string) => Promise<void>
  /** Names of its Jobs, without those that are being deleted. */
  readonly jobs: (name: string) => Promise<readonly string[]>
}

/** Creates a client that calls `api`. */
export function createCodePoolClient(api: KubeApi): CodePoolClient {
  const path = (name: string) => pathOf(CODE_POOLS, { namespace: RELEASE, name })
  const get = async (name: string) =>
    (await api.call({ method: 'GET', path: path(name) })) as CodePool
  const condition = async (name: string, type: string) => {
    const found = (await get(name)).status?.conditions?.find((one) => one.type === type)
    return `${found?.status ?? ''} ${found?.reason ?? ''}`
  }
  return {
    get,
    condition,
    async create(name, spec) {
      const { apiVersion, kind } = CODE_POOLS
      await applyObjects({ apiVersion, kind, metadata: { name, namespace: RELEASE }, spec })
    },
    async patch(name, spec) {
      const contentType = 'application/merge-patch+json'
      await api.call({ method: 'PATCH', path: path(name), body: { spec }, contentType })
    },
    async waitForCondition(name, type, expected) {
      const isReached = async () => (await condition(name, type)) === expected
      const label = `the condition ${type} of ${name} to be ${expected}`
      await waitFor(label, isReached, CONDITION_MS_MAX).catch(async (error: unknown) => {
        const { status } = await get(name)
        throw new Error(JSON.stringify(status, null, 1), { cause: error })
      })
    },
    async jobs(name) {
      const query = { labelSelector: `curtail.dev/codepool=${name}` }
      const all = await api.call({
        method: 'GET',
        path: pathOf(JOBS, { namespace: RELEASE }),
        query,
      })
      return (all as { items: readonly KubeObject[] }).items
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name)
    },
  }
}

/** The code secret that the chart generated. */
export const CODE_SECRET = { name: `${FULL_NAME}-code-secret`, key: 'secret' }

/** Creates a Secret with a new code secret, or gives an existing one a new code secret. */
export async function createCodeSecret(name: string): Promise<void> {
  await applyObjects({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: RELEASE },
    data: { secret: randomBytes(32).toString('base64') },
  })
}
