// The controller that the chart deploys: its RBAC rules are exactly those in the manual, each pool
// in the values is a valid CodePool, and other pool modes deploy no controller.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { helmMajors } from '../../dependencies/helm.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type GivenValues,
  type KubeObject,
  objectOf,
  podsOf,
  refillJobsOf,
  renderChart,
} from '../../kit/chart/chart-render.ts'

const NAME = 'shop-curtail-controller'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** The rules in the YAML blocks of a manual, of which there must be `count`. */
function rulesOfManual(file: string, count: number): readonly (readonly Rule[])[] {
  const [, rights = ''] = readFileSync(`docs/${file}`, 'utf8').split('## Permissions')
  const blocks = [...rights.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block)
  expect(blocks).toHaveLength(count)
  return blocks.map((block) => parse(block) as Rule[])
}

const caseOf = (name: string) => renderChart({ major: 4, ...chartCases[name] })
const rulesIn = (objects: readonly KubeObject[], namespace: string) => {
  const roles = objects.filter(
    ({ kind, metadata }) => kind === 'Role' && metadata.namespace === namespace,
  )
  return roles.flatMap((role) => (role as unknown as { rules: readonly Rule[] }).rules)
}

/** The rules for CodePools include those for events. */
const withoutEvents = (rules: readonly Rule[]) =>
  rules.filter(({ resources }) => !resources.includes('events'))

describe('the permissions', () => {
  const [each = [], own = [], ofLists = []] = rulesOfManual('controller.md', 3)
  const [eachPolicy = [], ofApiKeys = [], ownPolicy = []] = rulesOfManual('policies.md', 3)

  test('are those in the manual, in the namespace of the release', async () => {
    const without = await caseOf('limits in a file')
    expect(rulesIn(without, 'store')).toEqual([...each, ...own, ...ofLists])
    const objects = await caseOf('default')
    const all = [...each, ...withoutEvents(eachPolicy), ...own, ...ofLists, ...ownPolicy]
    expect(rulesIn(objects, 'store')).toEqual(all)
    expect(objects.filter(({ kind }) => kind.startsWith('ClusterRole'))).toEqual([])
  })

  test('cover each namespace that may write policies', async () => {
    const objects = await caseOf('policies of several namespaces')
    expect(rulesIn(objects, 'team-a')).toEqual(eachPolicy)
    const rules = rulesIn(objects, 'keys')
    expect(rules.filter(({ resources }) => resources.includes('secrets'))).toEqual(ofApiKeys)
    expect(rules).toHaveLength(eachPolicy.length + 1)
    expect(rulesIn(objects, 'store')).toEqual(rulesIn(await caseOf('default'), 'store'))
  })

  test('cover each watched namespace, without Leases', async () => {
    const objects = await caseOf('pools of several namespaces and clusters')
    const named = own.map((rule) =>
      rule.resourceNames === undefined ? rule : { ...rule, resourceNames: ['links'] },
    )
    const policies = withoutEvents(eachPolicy)
    const inStore = [...each, ...policies, ...named, ...ofLists, ...ownPolicy]
    expect(rulesIn(objects, 'store')).toEqual(inStore)
    for (const namespace of ['one', 'two']) expect(rulesIn(objects, namespace)).toEqual(each)
    const bindings = objects.filter(({ kind }) => kind === 'RoleBinding')
    expect(bindings.map(({ metadata }) => metadata.namespace)).toEqual(['store', 'one', 'two'])
    for (const binding of bindings) {
      expect(binding).toMatchObject({
        roleRef: { kind: 'Role', name: NAME },
        subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: 'store' }],
      })
    }
  })
})

test('admission policies name the Secrets of pools and the account of the controller', async () => {
  const objects = await caseOf('pools of several namespaces and clusters')
  const policy = objectOf(objects, 'ValidatingAdmissionPolicy', 'store.shop-curtail-refill-jobs')
  const { matchConditions, variables } = policy.spec as Record<string, object[]>
  expect(variables).toContainEqual({
    name: 'codeSecrets',
    expression: '["shop-curtail-code-secret","code-of-two"]',
  })
  const account = `system:serviceaccount:store:${NAME}`
  expect(matchConditions).toEqual([
    { name: 'is-controller', expression: `request.userInfo.username == '${account}'` },
  ])
  const kinds = (await caseOf('default')).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind.startsWith('ValidatingAdmission'))).toEqual([])
})

describe('the controller pod', () => {
  const controllerOf = (objects: readonly KubeObject[]) => {
    const pod = podsOf(objects).find(({ of }) => of.metadata.name === NAME)
    const [container] = pod?.spec.containers ?? []
    if (pod === undefined || container === undefined) throw new Error('no controller is rendered')
    return { pod, container }
  }

  test('has no code secret and little memory, and waits for the schema', async () => {
    const { pod, container } = controllerOf(await caseOf('default'))
    expect(pod.replicas).toBe(2)
    expect(pod.spec.terminationGracePeriodSeconds).toBe(15)
    expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['wait-for-schema'])
    expect(container.command).toContain('--max-old-space-size=128')
    expect(container.resources).toMatchObject({ limits: { memory: '640Mi' } })
    expect(JSON.stringify(pod.spec)).not.toContain('code-secret')
    expect(container).toMatchObject({
      livenessProbe: { httpGet: { path: '/livez', port: 'metrics' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
    })
  })

  test('gets the namespaces, the cluster and the Lease that the values set', async () => {
    const several = controllerOf(await caseOf('pools of several namespaces and clusters'))
    expect(several.container.env).toEqual(
      expect.arrayContaining([
        { name: 'WATCH_NAMESPACES', value: 'store,one,two' },
        { name: 'CLUSTER_NAME', value: 'east' },
        { name: 'LEASE_NAME', value: 'links' },
      ]),
    )
    const names = controllerOf(await caseOf('default')).container.env?.map(({ name }) => name)
    expect(names).not.toContain('WATCH_NAMESPACES')
    expect(names).not.toContain('CLUSTER_NAME')
  })

  test.each<readonly [string, object]>([
    ['default', { ports: [443, 6443].map((port) => ({ protocol: 'TCP', port })) }],
    [
      'policies with peers',
      { ports: [{ protocol: 'TCP', port: 8443 }], to: [{ ipBlock: { cidr: '192.0.2.1/32' } }] },
    ],
  ])('is the only pod that may connect to the API server: %s', async (name, rule) => {
    const objects = await caseOf(name)
    const egressOf = (policy: KubeObject) => (policy.spec?.['egress'] ?? []) as object[]
    const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy')
    const allowing = policies.filter((policy) =>
      egressOf(policy).some((one) => JSON.stringify(one) === JSON.stringify(rule)),
    )
    expect(allowing.map(({ metadata }) => metadata.name)).toEqual([NAME])
  })

  test('has a PodDisruptionBudget only if it has several replicas', async () => {
    const budgets = async (name: string) =>
      (await caseOf(name))
        .filter(({ kind, metadata }) => kind === 'PodDisruptionBudget' && metadata.name === NAME)
        .map(({ spec }) => spec?.['maxUnavailable'])
    expect(await budgets('default')).toEqual([1])
    expect(await budgets('one pod of each')).toEqual([])
  })

  test.each([
    ['pods watched by Prometheus', 'PodMonitor'],
    ['services watched by Prometheus', 'ServiceMonitor'],
  ])('is scraped: %s', async (name, kind) => {
    const objects = await caseOf(name)
    const { spec } = objectOf(objects, kind, NAME)
    expect(JSON.stringify(spec)).toContain('"port":"metrics","path":"/metrics"')
    if (kind === 'ServiceMonitor') objectOf(objects, 'Service', NAME)
  })
})

describe('the pools', () => {
  const poolsOf = (objects: readonly KubeObject[]) =>
    objects.filter(({ kind }) => kind === 'CodePool')

  test('are CodePools with the names that the create pods use', async () => {
    const pools = poolsOf(await caseOf('several pools'))
    expect(pools.map(({ spec }) => spec)).toMatchObject([
      { storeName: 'shop/Prod_1', lowWater: 1000, target: 2000 },
      { storeName: 'a'.repeat(128), lowWater: 50_000_000, target: 100_000_000, headroomHours: 24 },
      { storeName: 'low', lowWater: 1500, target: 2500 },
    ])
    const [first] = poolsOf(await caseOf('default'))
    expect(first?.metadata.name).toBe('shop-curtail-default')
    expect(first?.spec).toEqual({
      storeName: 'default',
      lowWater: 100_000,
      target: 200_000,
      codeSecret: { name: 'shop-curtail-code-secret', key: 'secret' },
      job: { activeDeadlineSeconds: 900 },
    })
  })

  test('satisfy the validation rule of the CRD on low water and target', async () => {
    for (const name of Object.keys(chartCases)) {
      for (const { spec } of poolsOf(await caseOf(name))) {
        const headroom = Number(spec?.['target']) - Number(spec?.['lowWater'])
        expect([name, headroom >= 1000]).toEqual([name, true])
      }
    }
  }, 60_000)

  test('are filled by Jobs with the pool, the target and the secret', async () => {
    const [pod] = podsOf(refillJobsOf(await caseOf('the user’s own secrets and rules')))
    if (pod === undefined) throw new Error('no Job is rendered')
    const { spec, labels } = pod
    expect(labels['app.kubernetes.io/component']).toBe('pools')
    expect(spec.serviceAccountName).toBe('shop-curtail-pools')
    expect(spec.containers[0]?.env).toEqual(
      expect.arrayContaining([
        { name: 'CODE_POOL', value: 'default' },
        { name: 'POOL_TARGET', value: '200000' },
      ]),
    )
    expect(spec.volumes).toContainEqual({
      name: 'code-secret',
      secret: { secretName: 'code', defaultMode: 288, items: [{ key: 'bytes', path: 'secret' }] },
    })
  })

  test.each(helmMajors)(
    'delay the start of the create pods in every mode except off: Helm %d',
    async (major) => {
      const waits = async (mode: string) => {
        const values: GivenValues = { pools: { mode } }
        const objects = await renderChart({ major, values })
        const create = podsOf(objects).find(({ of }) => of.metadata.name === 'shop-curtail-create')
        return create?.spec.initContainers?.some(({ name }) => name === 'wait-for-codes')
      }
      expect(await Promise.all(['controller', 'cron', 'off'].map(waits))).toEqual([
        true,
        true,
        false,
      ])
    },
  )
})

test.each(['pools filled by CronJobs', 'pools filled by another process'])(
  'the chart renders no controller with %s',
  async (name) => {
    const objects = await caseOf(name)
    expect(objects.filter(({ kind }) => /^(CodePool|Role|RoleBinding)$/.test(kind))).toEqual([])
    expect(objects.filter(({ metadata }) => metadata.name.includes('controller'))).toEqual([])
  },
)
