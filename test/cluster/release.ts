// One release of the chart, which the tests of the cluster share: two would be more than the
// machine carries. Whoever comes first installs it; who takes it away puts it back.
import { fileURLToPath } from 'node:url'
import { waitFor } from '../component/wait-for.ts'
import type { HelmMajor } from '../parts/helm.ts'
import { getObject, helm, kubectl, makeNamespace, mustRun, tryRun } from './cluster.ts'

/** Name of the release, and of its namespace. */
export const RELEASE = 'shop'
/** What the names of its objects begin with. */
export const FULL_NAME = 'shop-curtail'
/** How long an installation may take, on a machine that does other things too. */
export const INSTALL_MS_MAX = 12 * 60_000

const chart = fileURLToPath(new URL('../../charts/curtail', import.meta.url))
const definitions = fileURLToPath(new URL('../../charts/curtail-crds', import.meta.url))
const DEFINITIONS = 'curtail-crds'
/** Where docs/install.md puts the definitions. */
export const DEFINITIONS_NAMESPACE = 'curtail-system'
const ready = ['--wait', '--timeout', '10m', '--namespace', RELEASE]

/** Images of the tests; everything else is as the chart says. */
const images = {
  image: 'curtail',
  'edge.image': 'envoy',
  'cache.bundled.image': 'redis',
  'counters.bundled.image': 'redis',
  'cassandra.bundled.image': 'cassandra',
}
/** The values of every installation here, as flags of helm. */
export const ownValues: readonly string[] = [
  ...Object.entries(images).flatMap(([value, name]) => [
    ...['--set', `${value}.repository=localhost/${name}`],
    ...['--set', `${value}.tag=test`],
  ]),
  // Names are remembered for 5 s here (k8s/cluster/manifests.yaml), not for 30.
  ...['--set', 'dnsSeconds=8'],
]

/** Installs the definition of CodePools, or the same again. */
export async function installDefinitions(): Promise<void> {
  const into = ['--namespace', DEFINITIONS_NAMESPACE, '--create-namespace', '--wait']
  await helm(4, 'upgrade', '--install', DEFINITIONS, definitions, ...into)
}

/** Takes away the chart of the definition, which keeps the definition itself. */
export async function uninstallDefinitions(): Promise<void> {
  await helm(4, 'uninstall', DEFINITIONS, '--namespace', DEFINITIONS_NAMESPACE, '--wait')
}

/** Installs the release, unless it is there; resolves when helm says that all of it is ready. */
export async function ensureRelease(major: HelmMajor = 4): Promise<void> {
  const asked = ['get', 'secret', '-n', RELEASE, '-l', `owner=helm,name=${RELEASE},status=deployed`]
  const there = await tryRun('kubectl', [...asked, '-o', 'name'])
  if (there.stdout.trim() !== '') return
  await makeNamespace(RELEASE)
  await installDefinitions()
  await helm(major, 'install', RELEASE, chart, ...ownValues, ...ready)
}

/** Upgrades the release to these values. */
export async function upgradeRelease(...values: readonly string[]): Promise<void> {
  await helm(4, 'upgrade', RELEASE, chart, ...ownValues, ...values, ...ready)
}

/** Takes the release back to the revision before. */
export async function rollBack(): Promise<void> {
  await helm(4, 'rollback', RELEASE, ...ready)
}

/** Takes the release away. */
export async function uninstall(major: HelmMajor = 4): Promise<void> {
  await helm(major, 'uninstall', RELEASE, '--wait', '--timeout', '5m', '--namespace', RELEASE)
}

/** Where the edge answers, as `http://ADDRESS`. */
export async function edgeUrl(): Promise<string> {
  const named = ['service', `${FULL_NAME}-edge`, '--namespace', RELEASE]
  const { spec } = await getObject<{ spec: { clusterIP: string } }>(...named)
  return `http://${spec.clusterIP}`
}

/** Shortens a link through the edge, at once; resolves to its code. */
export async function shorten(edge: string, longUrl: string): Promise<string> {
  const answer = await fetch(`${edge}/v1/urls`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ long_url: longUrl }),
    signal: AbortSignal.timeout(5000),
  })
  const text = await answer.text()
  if (answer.status !== 201) throw new Error(`a link is not shortened: ${text}`)
  return new URL(answer.headers.get('Location') ?? '').pathname.slice(1)
}

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly status: { readonly podIP?: string }
}

/** The pods of one kind, such as `edge`, that are not on their way out. */
async function stayingPods(component: string): Promise<readonly Pod[]> {
  const label = `app.kubernetes.io/instance=${RELEASE},app.kubernetes.io/component=${component}`
  const { items } = await getObject<{ readonly items: readonly Pod[] }>(
    ...['pods', '--namespace', RELEASE, '-l', label],
  )
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** Their names. */
export async function podsOf(component: string): Promise<readonly string[]> {
  return (await stayingPods(component)).map(({ metadata }) => metadata.name)
}

/** What each pod of one kind says on its admin port. */
async function askEach(component: string, path: string): Promise<readonly string[]> {
  const ask = async ({ status }: Pod) => {
    const url = `http://${status.podIP ?? ''}:9090${path}`
    return (await fetch(url, { signal: AbortSignal.timeout(5000) })).text()
  }
  return Promise.all((await stayingPods(component)).map(ask))
}

/** Waits until each pod has again what it depends on: each by itself finds a new address. */
export async function untilConnected(): Promise<void> {
  for (const component of ['create', 'redirect', 'ratelimit']) {
    await waitFor(`each pod of ${component} to have what it depends on`, async () => {
      // One that has no address yet, or does not listen, has nothing.
      const said = await askEach(component, '/readyz').catch(() => undefined)
      if (said === undefined) return false
      return said.every((text) => {
        const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> }
        return Object.values(dependencies).every((state) => state === 'up')
      })
    })
  }
}

/** Waits until a series has grown on each pod of one kind. */
export async function untilCounted(component: string, series: string): Promise<void> {
  const counts = async () =>
    (await askEach(component, '/metrics')).map((text) => {
      const line = text.split('\n').find((one) => one.startsWith(`${series} `))
      return Number(line?.slice(series.length) ?? 0)
    })
  const before = await counts()
  await waitFor(`${series} to grow on each pod of ${component}`, async () =>
    (await counts()).every((count, place) => count > (before[place] ?? 0)),
  )
}

/** What the admin API asks for. */
export async function adminToken(): Promise<string> {
  const named = ['secret', `${FULL_NAME}-admin`, '--namespace', RELEASE]
  const { data } = await getObject<{ data: { token: string } }>(...named)
  return Buffer.from(data.token, 'base64').toString()
}

/** Waits until a workload, such as `deployment/edge`, is whole again. */
export async function untilWhole(workload: string): Promise<void> {
  const [kind = '', name = ''] = workload.split('/')
  const full = `${kind}/${FULL_NAME}-${name}`
  await kubectl('rollout', 'status', full, '--namespace', RELEASE, '--timeout=300s')
}

/** Waits until every workload is whole, and connected. */
export async function untilAllWhole(): Promise<void> {
  for (const kind of ['cache', 'counters', 'cassandra']) await untilWhole(`statefulset/${kind}`)
  for (const kind of ['create', 'redirect', 'ratelimit', 'edge', 'controller']) {
    await untilWhole(`deployment/${kind}`)
  }
  await untilConnected()
}

/** Asks the API server to evict a pod, as a drain of its node does. Throws where it refuses. */
export async function evict(pod: string): Promise<void> {
  const metadata = { name: pod, namespace: RELEASE }
  const wish = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata })
  const path = `/api/v1/namespaces/${RELEASE}/pods/${pod}/eviction`
  await mustRun('kubectl', ['create', '--raw', path, '-f', '-'], wish)
}
