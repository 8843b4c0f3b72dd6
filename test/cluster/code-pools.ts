// Words for CodePools of the release in the test cluster: making and changing them, and what their
// status, their Jobs and the store say.
import { randomBytes } from 'node:crypto'
import type { KubeApi } from '../../src/kube/api.ts'
import { CODE_POOLS, type CodePool } from '../../src/kube/code-pool/code-pool.ts'
import { JOBS } from '../../src/kube/code-pool/refill-jobs.ts'
import { type KubeObject, pathOf } from '../../src/kube/objects.ts'
import { waitFor } from '../component/wait-for.ts'
import { applyObjects } from './cluster.ts'
import { FULL_NAME, RELEASE } from './release.ts'

/** How long the controller may take to say something: a pod must say it first. */
const SAID_MS_MAX = 120_000

/** CodePools of the release's namespace. */
export interface PoolWords {
  readonly get: (name: string) => Promise<CodePool>
  readonly make: (name: string, spec: object) => Promise<void>
  readonly change: (name: string, spec: object) => Promise<void>
  /** A condition as `STATUS REASON`. */
  readonly condition: (name: string, type: string) => Promise<string>
  /** Waits until a condition is `what`; says what the pool says where it does not come to it. */
  readonly untilSays: (name: string, type: string, what: string) => Promise<void>
  /** Names of its Jobs that nobody is removing. */
  readonly jobs: (name: string) => Promise<readonly string[]>
}

/** The words, said by `api`. */
export function poolWords(api: KubeApi): PoolWords {
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
    async make(name, spec) {
      const { apiVersion, kind } = CODE_POOLS
      await applyObjects({ apiVersion, kind, metadata: { name, namespace: RELEASE }, spec })
    },
    async change(name, spec) {
      const contentType = 'application/merge-patch+json'
      await api.call({ method: 'PATCH', path: path(name), body: { spec }, contentType })
    },
    async untilSays(name, type, what) {
      const says = async () => (await condition(name, type)) === what
      await waitFor(`${name} to say ${type} ${what}`, says, SAID_MS_MAX).catch(
        async (error: unknown) => {
          const { status } = await get(name)
          throw new Error(JSON.stringify(status, null, 1), { cause: error })
        },
      )
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

/** The code secret that the chart made. */
export const CODE_SECRET = { name: `${FULL_NAME}-code-secret`, key: 'secret' }

/** Makes a Secret with bytes of its own for codes. */
export async function makeCodeSecret(name: string): Promise<void> {
  await applyObjects({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: RELEASE },
    data: { secret: randomBytes(32).toString('base64') },
  })
}
