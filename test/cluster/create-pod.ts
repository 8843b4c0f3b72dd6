// A create pod of the release that takes its codes from another pool, called without the edge and
// its limits: for tests that empty a pool.
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, getObject, kubectl } from './cluster.ts'
import { adminToken, FULL_NAME, RELEASE } from './release.ts'

const REQUEST_MS_MAX = 10_000
/** Requests in flight. */
const CONCURRENCY = 8
/** Links after which `createUntil` fails: the pools of these tests hold far fewer codes. */
const LINKS_MAX = 100_000

/** A create pod that is ready. */
export interface CreatePod {
  /** Creates links until `isEnough`, called after each link, is true; resolves to their codes. */
  readonly createUntil: (isEnough: (created: number) => boolean) => Promise<readonly string[]>
  /**
   * Creates links until the pool has at most `level` codes left; resolves to their codes. Throws if
   * that takes longer than `msMax`.
   */
  readonly createUntilLevel: (level: number, msMax: number) => Promise<readonly string[]>
  /** The number of codes that a pool of the store has left. */
  readonly levelOf: (pool: string) => Promise<number>
  readonly stop: () => Promise<void>
}

interface Container {
  readonly name: string
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
}

interface Template {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> }
  readonly spec: {
    readonly containers: readonly Container[]
    readonly initContainers: readonly Container[]
  }
}

/** Starts a create pod for `pool` of the store; resolves once it is ready. */
export async function startCreatePod(pool: string): Promise<CreatePod> {
  const name = `${FULL_NAME}-create-for-${pool}`
  const inNamespace = ['--namespace', RELEASE]
  const { spec } = await getObject<{ spec: { template: Template } }>(
    ...['deployment', `${FULL_NAME}-create`, ...inNamespace],
  )
  const { template } = spec
  const withPool = (containers: readonly Container[]) =>
    containers.map(({ env = [], ...rest }) => ({
      ...rest,
      env: env.map((one) => (one.name === 'CODE_POOL' ? { ...one, value: pool } : one)),
    }))
  const { containers, initContainers } = template.spec
  await applyObjects({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: RELEASE, labels: template.metadata.labels },
    spec: {
      ...template.spec,
      containers: withPool(containers),
      initContainers: withPool(initContainers),
      restartPolicy: 'Always',
    },
  })
  const wait = ['--for=condition=Ready', '--timeout=120s']
  await kubectl('wait', `pod/${name}`, ...wait, ...inNamespace)
  const { status } = await getObject<{ status: { podIP: string } }>('pod', name, ...inNamespace)
  const token = await adminToken()
  const url = `http://${status.podIP}:8080`
  const levelOfPool = (of: string) => levelOf(`http://${status.podIP}:9090`, { pool: of, token })
  return {
    createUntil: (isEnough) => createUntil(url, isEnough),
    createUntilLevel: async (level, msMax) => {
      const state = { isReached: false }
      const isReached = async () => (await levelOfPool(pool)) <= level
      const reached = waitFor(`a level of ${level} codes`, isReached, msMax).finally(() => {
        state.isReached = true
      })
      const [codes] = await Promise.all([createUntil(url, () => state.isReached), reached])
      return codes
    },
    levelOf: levelOfPool,
    stop: async () => {
      await kubectl('delete', 'pod', name, ...inNamespace, '--now')
    },
  }
}

async function createUntil(url: string, isEnough: (created: number) => boolean) {
  const codes: string[] = []
  const state = { isDone: false }
  const createLinks = async () => {
    while (!state.isDone) {
      const response = await fetch(`${url}/v1/urls`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ long_url: 'https://example.com/pool' }),
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
      })
      const text = await response.text()
      if (response.status !== 201) {
        throw new Error(`Cannot create a link: ${response.status} ${text}`)
      }
      codes.push(new URL(response.headers.get('Location') ?? '').pathname.slice(1))
      if (isEnough(codes.length)) state.isDone = true
      if (codes.length > LINKS_MAX) throw new Error(`${LINKS_MAX} links are still not enough`)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, createLinks))
  return codes
}

async function levelOf(url: string, { pool, token }: { pool: string; token: string }) {
  const response = await fetch(`${url}/admin/pools`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  })
  const pools = (await response.json()) as readonly { pool: string; level: number }[]
  const found = pools.find((one) => one.pool === pool)
  if (found === undefined) throw new Error(`the store has no pool ${pool}`)
  return found.level
}
