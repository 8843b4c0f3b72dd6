// The settings of pods and of their workloads: each applies to every role, and OpenShift's own ids
// replace those of the chart.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type Container,
  containersOf,
  type FoundPod,
  type GivenValues,
  type KubeObject,
  limiterFolder,
  objectOf,
  podsOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'

let objects: readonly KubeObject[]
let pods: readonly FoundPod[]

beforeAll(async () => {
  objects = await renderChart({ major: 4, ...chartCases['all pod values'] })
  pods = podsOf(objects)
}, 30_000)

const fieldsOf = (value: unknown) => value as Readonly<Record<string, unknown>>
const nameOf = ({ of }: FoundPod) => `${of.kind} ${of.metadata.name}`
const isServing = ({ of }: FoundPod) => ['Deployment', 'StatefulSet'].includes(of.kind)
const isWorkload = ({ of }: FoundPod) => of.kind !== 'Pod' // the pod of `helm test`

/** The main container: Envoy is a sidecar container of the edge. */
function mainOf({ spec }: FoundPod): Container {
  const [main] = [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers]
  if (main === undefined) throw new Error('a pod has no container')
  return main
}
const isSidecar = ({ restartPolicy }: Container) => restartPolicy === 'Always'

describe('podDefaults', () => {
  test('set the fields of every pod', () => {
    expect(pods.length).toBeGreaterThan(9)
    for (const pod of pods) {
      expect([nameOf(pod), pod.spec]).toEqual([
        nameOf(pod),
        expect.objectContaining({
          schedulerName: 'mine',
          hostAliases: [{ ip: '192.0.2.9', hostnames: ['cassandra.corp'] }],
          dnsPolicy: 'ClusterFirst',
          dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
        }),
      ])
      const context = { supplementalGroups: [5555], runAsNonRoot: true }
      expect(pod.spec.securityContext).toMatchObject(context)
      for (const { name, securityContext } of containersOf(pod)) {
        const level = name === 'shipper' ? {} : { seLinuxOptions: { level: 's0' } }
        expect([name, securityContext]).toMatchObject([name, { ...level, capabilities: {} }])
      }
    }
  })

  test('set the environment of the main container of every workload', () => {
    const sources = pods.filter(isWorkload).map((pod) => fieldsOf(mainOf(pod))['envFrom'])
    expect(sources).toEqual(sources.map(() => [{ secretRef: { name: 'more-env' } }]))
  })

  test('change the fields of probes, and replace their handler', () => {
    const serving = pods.filter(isServing)
    expect(serving).toHaveLength(8)
    for (const pod of serving) {
      const { startupProbe, livenessProbe, readinessProbe } = fieldsOf(mainOf(pod))
      expect(startupProbe).toMatchObject({ failureThreshold: 90, periodSeconds: expect.anything() })
      expect(livenessProbe).toMatchObject({ periodSeconds: 20, timeoutSeconds: expect.anything() })
      const { periodSeconds, timeoutSeconds, failureThreshold, ...handler } =
        fieldsOf(readinessProbe)
      expect([periodSeconds, timeoutSeconds]).toEqual([expect.any(Number), expect.any(Number)])
      expect([undefined, 3]).toContain(failureThreshold)
      expect(handler).toEqual({ exec: { command: ['/bin/true'] } })
    }
  })

  test('add containers to the pods of Deployments and StatefulSets, not of Jobs', () => {
    const withShipper = pods.filter((pod) =>
      pod.spec.containers.some(({ name }) => name === 'shipper'),
    )
    expect(withShipper.map(nameOf)).toEqual(pods.filter(isServing).map(nameOf))
  })

  test('set the fields of every Deployment', () => {
    const deployments = objects.filter(({ kind }) => kind === 'Deployment')
    expect(deployments).toHaveLength(5)
    for (const { spec, metadata } of deployments) {
      expect(spec).toMatchObject({ strategy: { type: 'Recreate' }, revisionHistoryLimit: 7 })
      expect(metadata.annotations).toMatchObject({ reload: 'auto' })
    }
  })
})

describe('the values of a workload', () => {
  test('replace fields of podDefaults that exclude one another', async () => {
    const profile = (name: string) => ({
      seccompProfile: { type: 'Localhost', localhostProfile: name },
      appArmorProfile: { type: 'Localhost', localhostProfile: name },
    })
    const runtime = { type: 'RuntimeDefault' }
    const runtimes = { seccompProfile: runtime, appArmorProfile: runtime }
    const podDefaults = {
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3 } },
      livenessProbe: { exec: { command: ['/bin/true'] }, periodSeconds: 20 },
      readinessProbe: { httpGet: { path: '/', port: 1 } },
      podSecurityContext: { ...profile('pod'), supplementalGroups: [5555] },
      securityContext: { ...profile('container'), seLinuxOptions: { level: 's0' } },
    }
    const pod = {
      strategy: { type: 'Recreate' },
      livenessProbe: { tcpSocket: { port: 2 }, timeoutSeconds: 4 },
      readinessProbe: { httpGet: { port: 3 } },
      podSecurityContext: runtimes,
      securityContext: runtimes,
    }
    const given = await renderChart({ major: 4, values: { podDefaults, redirect: { pod } } })
    const deploymentOf = (name: string) => objectOf(given, 'Deployment', `shop-curtail-${name}`)
    expect(deploymentOf('redirect').spec?.['strategy']).toEqual(pod.strategy)
    expect(deploymentOf('create').spec?.['strategy']).toEqual(podDefaults.strategy)
    const podOf = (name: string) => {
      const found = podsOf(given).find(({ of }) => of.metadata.name === `shop-curtail-${name}`)
      if (found === undefined) throw new Error(`no pods of ${name} are rendered`)
      const { livenessProbe, readinessProbe, securityContext } = fieldsOf(mainOf(found))
      return [livenessProbe, readinessProbe, securityContext, found.spec.securityContext]
    }
    const probe = { periodSeconds: 20, timeoutSeconds: 4, failureThreshold: 6 }
    const limits = { periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 3 }
    expect(podOf('redirect')).toEqual([
      { ...probe, tcpSocket: { port: 2 } },
      { ...limits, httpGet: { port: 3 } },
      expect.objectContaining({ ...runtimes, seLinuxOptions: { level: 's0' } }),
      expect.objectContaining({ ...runtimes, supplementalGroups: [5555] }),
    ])
    expect(podOf('create')).toEqual([
      { ...probe, timeoutSeconds: 5, exec: { command: ['/bin/true'] } },
      { ...limits, httpGet: { path: '/', port: 1 } },
      expect.objectContaining(profile('container')),
      expect.objectContaining(profile('pod')),
    ])
  })
})

describe('ServiceAccounts', () => {
  const accountsOf = (given: readonly KubeObject[]) =>
    given.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name)
  const accountOf = (given: readonly KubeObject[], name: string) =>
    podsOf(given).find(({ of }) => of.metadata.name === name)?.spec.serviceAccountName

  test('can be named, and created by another process', async () => {
    const values = {
      serviceAccountAnnotations: { cloud: 'all', role: 'none' },
      controller: { pod: { serviceAccount: { name: 'boss', annotations: { role: 'boss' } } } },
      redirect: { pod: { serviceAccount: { create: false, name: 'shared' } } },
      create: { pod: { serviceAccount: { create: false } } },
      ratelimit: {
        pod: { serviceAccount: { name: 'limits' } },
        rules: 'domain: edge\ndescriptors: []\n',
      },
    }
    const given = await renderChart({ major: 4, values })
    const pair = (name: string) => accountOf(given, `shop-curtail-${name}`)
    expect(['controller', 'redirect', 'create', 'ratelimit', 'edge'].map(pair)).toEqual([
      'boss',
      'shared',
      'default',
      'limits',
      'shop-curtail-edge',
    ])
    // The hook runs before Helm has created the account of the limiters.
    expect(pair('check-rules')).toBe('shop-curtail-check-rules')
    const accounts = accountsOf(given)
    expect(accounts).toEqual(expect.arrayContaining(['boss', 'limits', 'shop-curtail-edge']))
    for (const name of ['shop-curtail-controller', 'shared', 'shop-curtail-redirect', 'default'])
      expect(accounts).not.toContain(name)
    const { metadata } = objectOf(given, 'ServiceAccount', 'boss')
    expect(metadata.annotations).toEqual({ cloud: 'all', role: 'boss' })
    const [binding] = given.filter(({ kind }) => kind === 'RoleBinding')
    expect(fieldsOf(binding)['subjects']).toMatchObject([{ name: 'boss' }])
  })

  test('of all pods cannot have one name if the chart creates them', async () => {
    const values = { image: someImage, podDefaults: { serviceAccount: { name: 'one' } } }
    const { exitCode, error } = await tryRender({ major: 4, values })
    expect([exitCode === 0, error]).toEqual([
      false,
      expect.stringContaining('podDefaults.serviceAccount.name must be empty if'),
    ])
    const podDefaults = { serviceAccount: { name: 'one', create: false } }
    const create = { pod: { serviceAccount: { create: true } } } // does not inherit the name
    const given = await renderChart({ major: 4, values: { podDefaults, create } })
    expect(accountsOf(given)).toEqual(['shop-curtail-create'])
    const used = new Set(podsOf(given).map(({ spec }) => spec.serviceAccountName))
    expect([...used].sort()).toEqual(['one', 'shop-curtail-create'])
  })

  const serviceAccount = { create: false }
  const shared = { pod: { serviceAccount: { name: 'shared' } } }
  test.each<[string, GivenValues, string]>([
    ['of the controller', { controller: { pod: { serviceAccount } } }, 'must not be default'],
    ['of all pods', { podDefaults: { serviceAccount } }, 'must not be default'],
    [
      'of two workloads',
      { redirect: shared, counters: { bundled: shared } },
      'ServiceAccounts of redirect and counters must have different names',
    ],
    [
      'that has the name of another',
      { migrate: { pod: { serviceAccount: { name: 'shop-curtail-pools' } } } },
      'ServiceAccounts of migrate and pools must have different names',
    ],
  ])('cannot be one %s', async (_, values, message) => {
    const { exitCode, error } = await tryRender({
      ...{ major: 4, values: { image: someImage, ...values } },
    })
    expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(message)])
    expect(error.match(/^- /gm)).toHaveLength(1)
  })

  test('can be `default` if no controller is installed', async () => {
    const values = { podDefaults: { serviceAccount }, pools: { mode: 'cron' } }
    const used = podsOf(await renderChart({ major: 4, values })).map((pod) => pod.spec)
    expect(new Set(used.map((spec) => spec.serviceAccountName))).toEqual(new Set(['default']))
  })
})

describe('user and group ids', () => {
  const openShift = ['security.openshift.io/v1']
  const adapted = (adaptSecurityContext: string): GivenValues => ({
    global: { compatibility: { openshift: { adaptSecurityContext } } },
  })

  test.each<[string, { apiVersions?: string[]; values?: GivenValues; isFixed: boolean }]>([
    ['are fixed by default', { isFixed: true }],
    ['are omitted on OpenShift', { apiVersions: openShift, isFixed: false }],
    ['are omitted if the values force it', { values: adapted('force'), isFixed: false }],
    [
      'are fixed if the values disable it',
      { apiVersions: openShift, values: adapted('disabled'), isFixed: true },
    ],
  ])('%s', async (_, { apiVersions = [], values = {}, isFixed }) => {
    const given = await renderChart({ major: 4, apiVersions, values })
    const alone = await renderChart({
      ...{ major: 4, apiVersions, chart: limiterFolder },
      values: { ...values, ratelimit: { existingRules: 'rules' } },
    })
    const found = podsOf([...given, ...alone])
    expect(found.length).toBeGreaterThan(10)
    for (const pod of found) {
      const context = pod.spec.securityContext ?? {}
      expect(context).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      const ids = ['runAsUser', 'runAsGroup', 'fsGroup'].filter((field) => field in context)
      expect([nameOf(pod), ids.length]).toEqual([nameOf(pod), isFixed ? 3 : 0])
      const users = containersOf(pod).filter(({ securityContext = {} }) =>
        Object.keys(securityContext).some((field) => field.startsWith('runAsU')),
      )
      expect(users).toEqual([])
    }
  })
})

test('values of a release without the newer values render the same', async () => {
  // --reuse-values replaces the defaults, so that values added since are absent; so does null.
  const newer = [
    ...['schedulerName', 'podSecurityContext', 'securityContext', 'hostAliases', 'dnsPolicy'],
    ...['dnsConfig', 'startupProbe', 'livenessProbe', 'readinessProbe', 'strategy'],
    ...['revisionHistoryLimit', 'deploymentAnnotations', 'serviceAccount', 'extraEnvFrom'],
    ...['extraContainers', 'spec'],
  ]
  const podDefaults = Object.fromEntries(newer.map((name) => [name, null]))
  const service = {
    ...{ httpNodePort: null, httpsNodePort: null, labels: null, clusterIP: null, spec: null },
    ...{ trafficDistribution: null, loadBalancerIP: null },
  }
  const edge = { service, ingress: null, httpRoute: null, gateway: null, certificate: null }
  const monitor = { relabelings: null, metricRelabelings: null, scrapeTimeout: null }
  const monitoring = { namespace: null, monitor }
  const global = { compatibility: null }
  const values = {
    ...{ podDefaults, edge, monitoring, global, namespaceOverride: null },
    controller: { rbac: null },
    // The default of the dependency in an earlier release.
    'curtail-ratelimit': { image: { repository: '' } },
  }
  expect(await renderChart({ major: 4, values })).toEqual(await renderChart({ major: 4 }))
})
