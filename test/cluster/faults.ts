// Injects faults into the release: suspended pods, an empty pool, missing permissions. Each
// returned clean-up also works if the fault is already repaired.
import type { Issued } from '../kit/ratelimit/grpc-certificates.ts'
import { applyObjects, getObject, kubectl } from './cluster.ts'
import { CODE_SECRET, type CodePoolClient, createCodePoolClient } from './code-pools.ts'
import { startCreatePod } from './create-pod.ts'
import { openKubeApi } from './kube-api.ts'
import { adminToken, FULL_NAME, podsOf, RELEASE } from './release.ts'
import { suspend, suspendRepeatedly } from './suspend-pods.ts'

const REQUEST_MS_MAX = 10_000
const REQUEST_EVERY_MS = 250
const REQUESTS_MAX = 240
const POOL = { lowWater: 1000, target: 3000 }
const CODES_PER_ROUND = 500

/** Removes a fault. */
export type CleanUp = () => Promise<unknown>

const inNamespace = ['--namespace', RELEASE] as const

/** The name of one pod of a component. */
export const firstPodOf = async (component: string) => (await podsOf(component))[0] ?? ''

/** Suspends these pods. */
export async function suspendAll(pods: readonly string[]): Promise<CleanUp> {
  const suspended = await Promise.all(pods.map((pod) => suspend(pod)))
  return () => {
    for (const { resume } of suspended) resume()
    return Promise.resolve()
  }
}

/** Alternately suspends and resumes a pod. */
export async function suspendOneRepeatedly(
  pod: string,
  durations: { suspendMs: number; runMs: number },
): Promise<CleanUp> {
  const { resume } = await suspendRepeatedly(pod, durations)
  return () => {
    resume()
    return Promise.resolve()
  }
}

/** Disables a link through the admin API; ignores the status, which may be 503 (not confirmed). */
export async function disableLink(code: string): Promise<void> {
  const { status } = await getObject<{ status: { podIP: string } }>(
    ...['pod', await firstPodOf('create'), ...inNamespace],
  )
  await fetch(`http://${status.podIP}:9090/admin/links/${code}/disable`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${await adminToken()}` },
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  })
}

/** Sends each limiter requests for a domain, four a second, for one minute at most. */
export async function queryLimiters(domain: string): Promise<CleanUp> {
  const label = 'app.kubernetes.io/component=ratelimit'
  const { items } = await getObject<{ items: { status: { podIP: string } }[] }>(
    ...['pods', ...inNamespace, '-l', label],
  )
  const body = JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
  const send = async ({ status }: { status: { podIP: string } }) => {
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    const response = await fetch(`http://${status.podIP}:8080/json`, {
      ...{ method: 'POST', body, signal },
    })
    await response.arrayBuffer()
  }
  await Promise.all(items.map(send))
  let requests = 1
  const timer = setInterval(() => {
    if (++requests >= REQUESTS_MAX) clearInterval(timer)
    for (const pod of items) send(pod).catch(() => undefined) // the pod may be replaced
  }, REQUEST_EVERY_MS)
  return () => {
    clearInterval(timer)
    return Promise.resolve()
  }
}

/** Calls `act` with a client for CodePools. */
export async function withPools<T>(act: (pools: CodePoolClient) => Promise<T>): Promise<T> {
  const { api, close } = await openKubeApi()
  try {
    return await act(createCodePoolClient(api))
  } finally {
    close()
  }
}

/** Creates a CodePool for the store's pool of the same name, and waits until it is full. */
export async function createPool(name: string, codeSecret: object = CODE_SECRET): Promise<void> {
  await withPools(async (pools) => {
    await pools.create(name, { ...POOL, storeName: name, codeSecret })
    await pools.waitForCondition(name, 'Ready', 'True LevelSufficient')
  })
}

/** Deletes a CodePool; its pool in the store remains. */
export const deletePool = (name: string) => kubectl('delete', 'codepool', name, ...inNamespace)

/** Consumes every code of a pool with its own create pod. */
export async function emptyPool(pool: string): Promise<CleanUp> {
  const createPod = await startCreatePod(pool)
  while ((await createPod.levelOf(pool)) > 0) {
    await createPod.createUntil((created) => created >= CODES_PER_ROUND)
  }
  return createPod.stop
}

interface Rule {
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** Removes a verb for a resource, such as `jobs`, from the controller's Role. */
export async function revokeVerb(resource: string, verb: string): Promise<void> {
  const role = ['role', `${FULL_NAME}-controller`, ...inNamespace]
  const { rules } = await getObject<{ rules: readonly Rule[] }>(...role)
  const value = rules.map((rule) =>
    rule.resources.includes(resource)
      ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) }
      : rule,
  )
  const patch = JSON.stringify([{ op: 'replace', path: '/rules', value }])
  await kubectl('patch', ...role, '--type=json', '-p', patch)
}

/** Stores a certificate and its key in a Secret of the type that the edge mounts. */
export async function storeCertificate(name: string, { cert, key }: Issued): Promise<void> {
  await applyObjects({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: RELEASE },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': cert, 'tls.key': key },
  })
}
