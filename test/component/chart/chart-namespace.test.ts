// Where the objects of the charts are, which of them an administrator creates, and what pods have
// besides the fields of the chart.
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  type GivenValues,
  type KubeObject,
  limiterFolder,
  objectOf,
  podsOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'

const observed: GivenValues = {
  monitor: { enabled: true, renderMode: 'alwaysRender' },
  rules: { enabled: true, renderMode: 'alwaysRender' },
  dashboards: { enabled: true },
}
/** Values with which the chart renders every kind of object that names a namespace. */
const everything: GivenValues = {
  monitoring: observed,
  controller: { admissionPolicy: { enabled: true } },
  ratelimit: { domains: [{ domain: 'shop', namespaces: ['team'] }] },
}

let plain: readonly KubeObject[]

beforeAll(async () => {
  plain = await renderChart({ major: 4, values: everything })
}, 30_000)

const of = (objects: readonly KubeObject[], ...kinds: string[]) =>
  objects.filter(({ kind }) => kinds.includes(kind))

describe('namespaceOverride', () => {
  test('moves every object, and every reference to its namespace', async () => {
    const namespace = 'elsewhere'
    const moved = await renderChart({
      ...{ major: 4, values: { ...everything, namespaceOverride: namespace } },
    })
    expect(moved).toEqual(await renderChart({ major: 4, namespace, values: everything }))
    expect(moved.filter(({ metadata }) => metadata.namespace === 'store')).toEqual([])
  })

  test('applies to the rate limiter alone', async () => {
    const ratelimit = { rules: 'domain: a\ndescriptors: []\n' }
    const given = { major: 4, chart: limiterFolder } as const
    const namespace = 'elsewhere'
    const moved = await renderChart({
      ...{ ...given, values: { ratelimit, namespaceOverride: namespace } },
    })
    expect(moved).toEqual(await renderChart({ ...given, namespace, values: { ratelimit } }))
    expect(new Set(moved.map(({ metadata }) => metadata.namespace))).toEqual(new Set([namespace]))
  })
})

test('monitoring.namespace moves the objects of Prometheus and Grafana, not the pods', async () => {
  const monitoring = { ...observed, namespace: 'observability' }
  const moved = await renderChart({ major: 4, values: { ...everything, monitoring } })
  const there = moved.filter(({ metadata }) => metadata.namespace === 'observability')
  const dashboards = of(there, 'ConfigMap')
  expect(dashboards.length).toBeGreaterThan(2)
  const read = /^(PodMonitor|PrometheusRule) |-dashboard-/
  expect(there).toEqual(moved.filter(({ kind, metadata }) => read.test(`${kind} ${metadata.name}`)))
  for (const { spec } of of(there, 'PodMonitor'))
    expect(spec?.['namespaceSelector']).toEqual({ matchNames: ['store'] })
  const rulesOf = (objects: readonly KubeObject[]) =>
    objectOf(objects, 'PrometheusRule', 'shop-curtail-alerts').spec
  expect(rulesOf(moved)).toEqual(rulesOf(plain))
  expect(of(plain, 'PodMonitor')[0]?.spec?.['namespaceSelector']).toBeUndefined()
})

test('without controller.rbac.create the chart renders all objects but the Roles', async () => {
  const controller = { admissionPolicy: { enabled: true }, rbac: { create: false } }
  const given = await renderChart({ major: 4, values: { ...everything, controller } })
  expect(of(plain, 'Role', 'RoleBinding').length).toBeGreaterThan(3)
  expect(given).toEqual(plain.filter(({ kind }) => !/^(Cluster)?Role(Binding)?$/.test(kind)))
})

describe('the specification of pods', () => {
  test('has the fields of the values, those of a workload first', async () => {
    const values = {
      podDefaults: { spec: { hostUsers: false, enableServiceLinks: true } },
      edge: { pod: { spec: { hostUsers: true, hostNetwork: true } } },
    }
    const pods = podsOf(await renderChart({ major: 4, values }))
    const found = pods.map(({ of: { metadata }, spec }) => {
      const { hostUsers, hostNetwork, enableServiceLinks } = { ...spec } as Record<string, unknown>
      return [metadata.name, hostUsers, hostNetwork, enableServiceLinks]
    })
    expect(found.length).toBeGreaterThan(10)
    for (const [name, ...fields] of found) {
      const isEdge = name === 'shop-curtail-edge'
      expect([name, ...fields]).toEqual([name, isEdge, isEdge ? true : undefined, true])
    }
    // Nothing else differs.
    const fields = { hostUsers: 0, hostNetwork: 0, enableServiceLinks: 0 }
    const before = podsOf(await renderChart({ major: 4 })).map(({ spec }) => spec)
    expect(pods.map(({ spec }) => ({ ...spec, ...fields }))).toEqual(
      before.map((spec) => ({ ...spec, ...fields })),
    )
  })

  test.each(['containers', 'volumes', 'serviceAccountName', 'terminationGracePeriodSeconds'])(
    'cannot replace %s, which have their own values or depend on others',
    async (field) => {
      const values = { image: someImage, redirect: { pod: { spec: { [field]: null } } } }
      const { exitCode, error } = await tryRender({ major: 4, values })
      expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(field)])
    },
  )
})

test('a PodDisruptionBudget can be a percentage; that of Cassandra is one node', async () => {
  const podDisruptionBudget = { maxUnavailable: '25%' }
  const cassandra = { bundled: { replicas: 3 } }
  const given = await renderChart({ major: 4, values: { podDisruptionBudget, cassandra } })
  const budgets = of(given, 'PodDisruptionBudget').map(({ metadata, spec }) => [
    ...[metadata.name.replace('shop-curtail-', ''), spec?.['maxUnavailable']],
  ])
  expect(budgets.sort()).toEqual([
    ['cassandra', 1],
    ['controller', '25%'],
    ['create', '25%'],
    ['edge', '25%'],
    ['ratelimit', '25%'],
    ['redirect', '25%'],
  ])
  const names = of(plain, 'PodDisruptionBudget').map(({ metadata }) => metadata.name)
  expect(names).not.toContain('shop-curtail-cassandra')
})
