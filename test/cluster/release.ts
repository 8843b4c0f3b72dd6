// The release of the chart that all cluster tests share, because the machine cannot run two. The
// first test file installs it; a test that uninstalls it also reinstalls it.
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

import { waitFor } from '../kit/wait-for.ts'
import type { HelmMajor } from '../dependencies/helm.ts'
import { getObject, helm, kubectl, createNamespace, mustRun, tryRun } from './cluster.ts'

/** The name of the release and of its namespace. */
export const RELEASE = 'shop'
/** The prefix of its objects' names. */
export const FULL_NAME = 'shop-curtail'
/** The deadline of an installation on a busy machine. */
export const INSTALL_MS_MAX = 12 * 60_000

/** A version of the release: paths of charts, and the tag of its image. */
export interface Version {
  readonly charts: { readonly curtail: string; readonly definitions: string }
  readonly imageTag: string
}

/** The version of the checkout. */
export const current: Version = {
  charts: {
    curtail: fileURLToPath(new URL('../../charts/curtail', import.meta.url)),
    definitions: fileURLToPath(new URL('../../charts/curtail-crds', import.meta.url)),
  },
  imageTag: 'test',
}
const DEFINITIONS = 'curtail-crds'
/** The namespace of the CRD chart in docs/install.md. */
export const DEFINITIONS_NAMESPACE = 'curtail-system'
/** Of `helm history`: the previous and the current revision. */
const revisions = z.tuple([z.object({ revision: z.int() }), z.unknown()])
const ready = ['--wait', '--timeout', '10m', '--namespace', RELEASE]

/** The test images; all other values are the chart's defaults. */
const images = {
  image: 'curtail',
  'edge.image': 'envoy',
  'cache.bundled.image': 'redis',
  'counters.bundled.image': 'redis',
  'cassandra.bundled.image': 'cassandra',
}
/** The values of every installation in these tests, as flags of helm. */
export const ownValues: readonly string[] = [
  ...Object.entries(images).flatMap(([value, name]) => [
    ...['--set', `${value}.repository=localhost/${name}`],
    ...['--set', `${value}.tag=test`],
  ]),
  // The cluster's DNS caches addresses for 1 s (k8s/cluster/manifests.yaml), and Envoy for 2 s.
  ...['--set', 'dnsSeconds=5'],
]

/** Installs or upgrades the CRD chart. */
export async function installDefinitions(
  major: HelmMajor = 4,
  { charts }: Version = current,
): Promise<void> {
  const into = ['--namespace', DEFINITIONS_NAMESPACE, '--create-namespace', '--wait']
  await helm(major, 'upgrade', '--install', DEFINITIONS, charts.definitions, ...into)
}

/** Installs a version, or upgrades to it: first the CRD chart, as in docs/install.md. */
export async function installVersion(major: HelmMajor, version: Version): Promise<void> {
  await installDefinitions(major, version)
  const tag = ['--set', `image.tag=${version.imageTag}`]
  const upgrade = ['upgrade', '--install', RELEASE, version.charts.curtail, ...ownValues, ...tag]
  await helm(major, ...upgrade, ...ready)
}

/** Uninstalls the CRD chart, which keeps the CRD. */
export async function uninstallDefinitions(): Promise<void> {
  await helm(4, 'uninstall', DEFINITIONS, '--namespace', DEFINITIONS_NAMESPACE, '--wait')
}

/** Installs the release unless it is installed; resolves when all pods are ready. */
export async function ensureRelease(): Promise<void> {
  const args = ['get', 'secret', '-n', RELEASE, '-l', `owner=helm,name=${RELEASE},status=deployed`]
  const deployed = await tryRun('kubectl', [...args, '-o', 'name'])
  if (deployed.stdout.trim() === '') {
    await createNamespace(RELEASE)
    await installVersion(4, current)
  }
  // README.md installs without --wait: Helm's status is `deployed` before the pods are ready.
  await waitForAllReady()
}

/** Upgrades the release to these values. */
export async function upgradeRelease(...values: readonly string[]): Promise<void> {
  await helm(4, 'upgrade', RELEASE, current.charts.curtail, ...ownValues, ...values, ...ready)
}

/** Rolls the release back to the previous revision. */
export async function rollBack(major: HelmMajor): Promise<void> {
  await helm(major, 'rollback', RELEASE, ...ready)
}

/** The number of the revision before the current one. */
export async function previousRevision(): Promise<string> {
  const args = ['--namespace', RELEASE, '--max', '2', '--output', 'json']
  const [previous] = revisions.parse(JSON.parse(await helm(4, 'history', RELEASE, ...args)))
  return String(previous.revision)
}

/** Uninstalls the release. */
export async function uninstall(major: HelmMajor = 4): Promise<void> {
  await helm(major, 'uninstall', RELEASE, '--wait', '--timeout', '5m', '--namespace', RELEASE)
}

/** The URL of the edge's Service, `http://ADDRESS`. */
export async function edgeUrl(): Promise<string> {
  const named = ['service', `${FULL_NAME}-edge`, '--namespace', RELEASE]
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(...named)
  return `http://${spec.clusterIP}`
}

/** Creates a link through the edge, without retries; resolves to its code. */
export async function createLink(edge: string, longUrl: string): Promise<string> {
  const response = await fetch(`${edge}/v1/urls`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ long_url: longUrl }),
    signal: AbortSignal.timeout(5000),
  })
  const text = await response.text()
  if (response.status !== 201) throw new Error(`Cannot create a link: ${text}`)
  return new URL(response.headers.get('Location') ?? '').pathname.slice(1)
}

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly status: { readonly podIP?: string }
}

/** The pods of a component, such as `edge`, without those that are terminating. */
async function activePods(component: string, release = RELEASE): Promise<readonly Pod[]> {
  const label = `app.kubernetes.io/instance=${release},app.kubernetes.io/component=${component}`
  const { items } = await getObject<{ readonly items: readonly Pod[] }>(
    ...['pods', '--namespace', release, '-l', label],
  )
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** The names of a component's pods, without those that are terminating. */
export async function podsOf(component: string): Promise<readonly string[]> {
  return (await activePods(component)).map(({ metadata }) => metadata.name)
}

/** The addresses of a component's pods, without those that are terminating. */
export async function addressesOf(component: string): Promise<readonly string[]> {
  return (await activePods(component)).map(({ status }) => status.podIP ?? '')
}

/** Runs an operator command, such as `block add`, in a controller pod; resolves to its stdout. */
export async function runInController(...command: readonly string[]): Promise<string> {
  const pod = ['exec', `deployment/${FULL_NAME}-controller`, '--namespace', RELEASE]
  return kubectl(...pod, '--', '/nodejs/bin/node', '/app/main.js', ...command)
}

/** The response of each pod of a component on its admin port. */
async function fetchFromEach(
  component: string,
  path: string,
  release = RELEASE,
): Promise<readonly string[]> {
  const get = async ({ status }: Pod) => {
    const url = `http://${status.podIP ?? ''}:9090${path}`
    return (await fetch(url, { signal: AbortSignal.timeout(5000) })).text()
  }
  return Promise.all((await activePods(component, release)).map(get))
}

/**
 * Waits until each pod is connected to its dependencies, whose addresses may have changed.
 * `release` is also the namespace.
 */
export async function waitForDependencies(release = RELEASE): Promise<void> {
  for (const component of ['create', 'redirect', 'ratelimit']) {
    await waitFor(`the dependencies of each pod of ${component} to be up`, async () => {
      // A pod may have no address yet, or not listen yet.
      const bodies = await fetchFromEach(component, '/readyz', release).catch(() => [])
      if (bodies.length === 0) return false
      return bodies.every((text) => {
        const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> }
        return Object.values(dependencies).every((state) => state === 'up')
      })
    })
  }
}

/** Waits until a metric series has increased on each pod of a component. */
export async function waitForIncrease(component: string, series: string): Promise<void> {
  const counts = async () =>
    (await fetchFromEach(component, '/metrics')).map((text) => {
      const line = text.split('\n').find((one) => one.startsWith(`${series} `))
      return Number(line?.slice(series.length) ?? 0)
    })
  const before = await counts()
  await waitFor(`${series} to increase on each pod of ${component}`, async () =>
    (await counts()).every((count, place) => count > (before[place] ?? 0)),
  )
}

/** The bearer token of the admin API. */
export async function adminToken(): Promise<string> {
  const named = ['secret', `${FULL_NAME}-admin`, '--namespace', RELEASE]
  const { data } = await getObject<{ data: { token: string } }>(...named)
  return Buffer.from(data.token, 'base64').toString()
}

/** Waits until the rollout of a workload, such as `deployment/edge`, is complete. */
export async function waitForRollout(workload: string): Promise<void> {
  const [kind = '', name = ''] = workload.split('/')
  const full = `${kind}/${FULL_NAME}-${name}`
  await kubectl('rollout', 'status', full, '--namespace', RELEASE, '--timeout=300s')
}

/** Waits until every workload is rolled out and connected to its dependencies. */
export async function waitForAllReady(): Promise<void> {
  for (const kind of ['cache', 'counters', 'cassandra']) await waitForRollout(`statefulset/${kind}`)
  for (const kind of ['create', 'redirect', 'ratelimit', 'edge', 'controller']) {
    await waitForRollout(`deployment/${kind}`)
  }
  await waitForDependencies()
}

/**
 * Makes the kubelet update the mounted Secrets and ConfigMaps of a component's pods: it does this
 * when a pod changes, and otherwise about twice a minute.
 */
export async function updateMounts(component: string): Promise<void> {
  const named = (await podsOf(component)).map((pod) => `pod/${pod}`)
  const change = `curtail.test/mounts-updated=${Date.now()}`
  await kubectl('annotate', '--overwrite', ...named, change, '--namespace', RELEASE)
}

/** Evicts a pod, as `kubectl drain` does. Throws if the API server rejects the eviction. */
export async function evict(pod: string): Promise<void> {
  const metadata = { name: pod, namespace: RELEASE }
  const request = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata })
  const path = `/api/v1/namespaces/${RELEASE}/pods/${pod}/eviction`
  await mustRun('kubectl', ['create', '--raw', path, '-f', '-'], request)
}
