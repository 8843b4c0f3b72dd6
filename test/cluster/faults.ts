// Faults that are done to the release on purpose: pods that hang, codes that run out, rights that
// go missing. What each gives cleans up, whether or not somebody has mended it meanwhile.
import type { Issued } from '../component/grpc-certificates.ts'
import { applyObjects, getObject, kubectl } from './cluster.ts'
import { CODE_SECRET, type PoolWords, poolWords } from './code-pools.ts'
import { startCreator } from './creator.ts'
import { freeze, stutter } from './frozen-pods.ts'
import { openKubeApi } from './kube.ts'
import { adminToken, FULL_NAME, podsOf, RELEASE } from './release.ts'

const ASK_MS_MAX = 10_000
const ASK_EVERY_MS = 250
const ASKS_MAX = 240
const POOL = { lowWater: 1000, target: 3000 }
const MINTED_AT_ONCE = 500

/** Cleans up. */
export type CleanUp = () => Promise<unknown>

const at = ['--namespace', RELEASE] as const

/** The name of a pod of one kind. */
export const firstOf = async (component: string) => (await podsOf(component))[0] ?? ''

/** Stops these pods. */
export async function freezeAll(pods: readonly string[]): Promise<CleanUp> {
  const frozen = await Promise.all(pods.map((pod) => freeze(pod)))
  return () => {
    for (const { thaw } of frozen) thaw()
    return Promise.resolve()
  }
}

/** Has a pod stop and go on, again and again. */
export async function stutterOne(
  pod: string,
  how: { stopMs: number; goMs: number },
): Promise<CleanUp> {
  const { thaw } = await stutter(pod, how)
  return () => {
    thaw()
    return Promise.resolve()
  }
}

/** Disables a link by the admin API, which may say that it could not confirm it. */
export async function disableLink(code: string): Promise<void> {
  const { status } = await getObject<{ status: { podIP: string } }>(
    ...['pod', await firstOf('create'), ...at],
  )
  await fetch(`http://${status.podIP}:9090/admin/links/${code}/disable`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${await adminToken()}` },
    signal: AbortSignal.timeout(ASK_MS_MAX),
  })
}

/** Asks each limiter about a domain, a few times a second and not for ever. */
export async function askLimitersFor(domain: string): Promise<CleanUp> {
  const label = 'app.kubernetes.io/component=ratelimit'
  const { items } = await getObject<{ items: { status: { podIP: string } }[] }>(
    ...['pods', ...at, '-l', label],
  )
  const body = JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
  const ask = async ({ status }: { status: { podIP: string } }) => {
    const signal = AbortSignal.timeout(ASK_MS_MAX)
    const response = await fetch(`http://${status.podIP}:8080/json`, {
      ...{ method: 'POST', body, signal },
    })
    await response.arrayBuffer()
  }
  await Promise.all(items.map(ask))
  let asked = 1
  const timer = setInterval(() => {
    if (++asked >= ASKS_MAX) clearInterval(timer)
    for (const pod of items) ask(pod).catch(() => undefined) // one that is replaced does not matter
  }, ASK_EVERY_MS)
  return () => {
    clearInterval(timer)
    return Promise.resolve()
  }
}

/** Does something with the words for CodePools. */
export async function withPools<T>(act: (words: PoolWords) => Promise<T>): Promise<T> {
  const { api, close } = await openKubeApi()
  try {
    return await act(poolWords(api))
  } finally {
    close()
  }
}

/** Makes a CodePool of the store's pool of the same name, and waits until it is full. */
export async function makePool(name: string, codeSecret: object = CODE_SECRET): Promise<void> {
  await withPools(async (words) => {
    await words.make(name, { ...POOL, storeName: name, codeSecret })
    await words.untilSays(name, 'Ready', 'True LevelSufficient')
  })
}

/** Deletes a CodePool; the pool of the store stays. */
export const dropPool = (name: string) => kubectl('delete', 'codepool', name, ...at)

/** Has a creator of its own take every code of a pool. */
export async function emptyPool(pool: string): Promise<CleanUp> {
  const creator = await startCreator(pool)
  while ((await creator.levelOf(pool)) > 0) {
    await creator.createUntil((made) => made >= MINTED_AT_ONCE)
  }
  return creator.stop
}

interface Rule {
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** Takes a verb for Jobs from the controller's Role. */
export async function forbidJobs(verb: string): Promise<void> {
  const role = ['role', `${FULL_NAME}-controller`, ...at]
  const { rules } = await getObject<{ rules: readonly Rule[] }>(...role)
  const value = rules.map((rule) =>
    rule.resources.includes('jobs')
      ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) }
      : rule,
  )
  const patch = JSON.stringify([{ op: 'replace', path: '/rules', value }])
  await kubectl('patch', ...role, '--type=json', '-p', patch)
}

/** Stores a certificate and its key in a Secret, as the edge takes them. */
export async function storeCertificate(name: string, { cert, key }: Issued): Promise<void> {
  await applyObjects({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: RELEASE },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': cert, 'tls.key': key },
  })
}
