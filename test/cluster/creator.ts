// A creator of the release's own kind that takes its codes from another pool, asked without the
// edge and its limits: for tests that empty a pool.
import { applyObjects, getObject, kubectl } from './cluster.ts'
import { adminToken, FULL_NAME, RELEASE } from './release.ts'

const ASK_MS_MAX = 10_000
/** Requests at once. */
const ASKERS = 8
/** Links that are made before it counts as enough: pools here hold far fewer codes. */
const LINKS_MAX = 100_000

/** A creator that is ready. */
export interface Creator {
  /** Creates links until `isEnough`, asked after each; resolves to their codes. */
  readonly createUntil: (isEnough: (made: number) => boolean) => Promise<readonly string[]>
  /** How many codes a pool of the store has left. */
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

/** Starts one for `pool` of the store; resolves once it is ready. */
export async function startCreator(pool: string): Promise<Creator> {
  const name = `${FULL_NAME}-creator-of-${pool}`
  const at = ['--namespace', RELEASE]
  const { spec } = await getObject<{ spec: { template: Template } }>(
    ...['deployment', `${FULL_NAME}-create`, ...at],
  )
  const { template } = spec
  const of = (containers: readonly Container[]) =>
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
      containers: of(containers),
      initContainers: of(initContainers),
      restartPolicy: 'Always',
    },
  })
  await kubectl('wait', `pod/${name}`, '--for=condition=Ready', '--timeout=120s', ...at)
  const { status } = await getObject<{ status: { podIP: string } }>('pod', name, ...at)
  const token = await adminToken()
  return {
    createUntil: (isEnough) => createUntil(`http://${status.podIP}:8080`, isEnough),
    levelOf: (of) => levelOf(`http://${status.podIP}:9090`, { pool: of, token }),
    stop: async () => {
      await kubectl('delete', 'pod', name, ...at, '--now')
    },
  }
}

async function createUntil(url: string, isEnough: (made: number) => boolean) {
  const codes: string[] = []
  const isDone = { is: false }
  const ask = async () => {
    while (!isDone.is) {
      const answer = await fetch(`${url}/v1/urls`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ long_url: 'https://example.com/pool' }),
        signal: AbortSignal.timeout(ASK_MS_MAX),
      })
      const text = await answer.text()
      if (answer.status !== 201) throw new Error(`no link is made: ${answer.status} ${text}`)
      codes.push(new URL(answer.headers.get('Location') ?? '').pathname.slice(1))
      if (isEnough(codes.length)) isDone.is = true
      if (codes.length > LINKS_MAX) throw new Error(`${LINKS_MAX} links are still not enough`)
    }
  }
  await Promise.all(Array.from({ length: ASKERS }, ask))
  return codes
}

async function levelOf(url: string, { pool, token }: { pool: string; token: string }) {
  const answer = await fetch(`${url}/admin/pools`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(ASK_MS_MAX),
  })
  const pools = (await answer.json()) as readonly { pool: string; level: number }[]
  const found = pools.find((one) => one.pool === pool)
  if (found === undefined) throw new Error(`the store has no pool ${pool}`)
  return found.level
}
