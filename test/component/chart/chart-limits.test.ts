// The shipped limits of the chart: the RateLimitPolicies, the rules file and Envoy's local limits
// derive from the same values, and the controller sends the policies to the rate-limit pods.
import { describe, expect, test } from '@jest/globals'
import { compile } from '../../../src/policies/compile.ts'
import type { DomainGrant } from '../../../src/policies/policy.ts'
import { POLICIES_BYTES_MAX } from '../../../src/policies/shares.ts'
import { describeRules } from '../../../src/limits/describe-rules.ts'
import { parseRules } from '../../../src/limits/parse-rules.ts'
import { parseGrants } from '../../../src/kube/rate-limit-policy/parse-grants.ts'
import { helmMajors } from '../../dependencies/helm.ts'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  containersOf,
  type GivenValues,
  type KubeObject,
  objectOf,
  podsOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'
import { policy, rulesOf } from '../../kit/policies/random-policies.ts'

const LIMITER = 'shop-curtail-ratelimit'
const CONTROLLER = 'shop-curtail-controller'
/** Every limit differs from its default. */
const limits = {
  ...{ createTotalPerSecond: 1_000_000, createTotalBurst: 999_999, createPerSecond: 3 },
  ...{ createBurst: 21, redirectPerSecond: 201, redirectBurst: 501 },
  ...{ reportPerHour: 13, reportBurst: 11 },
  ...{ unknownIpv4PerMinute: 301, unknownIpv6PerMinute: 61 },
}

const render = (ratelimit: GivenValues, major: 3 | 4 = 4) =>
  renderChart({ major, values: { ratelimit } })
const policiesOf = (objects: readonly KubeObject[]) =>
  objects.filter(({ kind }) => kind === 'RateLimitPolicy')

/** The settings of the main container of a Deployment, by name; a reference as JSON. */
function settingsOf(objects: readonly KubeObject[], name: string) {
  const pod = podsOf(objects).find(
    ({ of }) => of.kind === 'Deployment' && of.metadata.name === name,
  )
  const env = pod?.spec.containers[0]?.env ?? []
  return Object.fromEntries(
    env.map((one) => [one.name, one.value ?? JSON.stringify(one.valueFrom)]),
  )
}

/** The rules of the policies, as a limiter that receives them reads them. */
function compiledRows(objects: readonly KubeObject[]) {
  const given = policiesOf(objects).map(({ metadata, spec }) =>
    policy(`${metadata.namespace ?? ''}/${metadata.name}`, spec),
  )
  const { RATELIMIT_DOMAINS: domains = '' } = settingsOf(objects, CONTROLLER)
  const compilation = compile(given, JSON.parse(domains) as DomainGrant[])
  expect([...compilation.outcomes.values()].filter(({ accepted }) => !accepted)).toEqual([])
  return describeRules(rulesOf(compilation)).rows
}

/** The rules of the file, without the sample of an API key. */
function fileRows(objects: readonly KubeObject[]) {
  const text = objectOf(objects, 'ConfigMap', LIMITER).data?.['rate-limits.yaml'] ?? ''
  const parsed = parseRules([{ name: 'file', text }], { mergeDomains: false })
  if ('faults' in parsed) throw new Error(JSON.stringify(parsed.faults))
  const { rows } = describeRules(parsed.rules)
  return rows.filter(([path]) => path?.includes('api_key') !== true)
}

const units: Readonly<Record<string, string>> = { second: '1s', minute: '1m', hour: '1h' }
const inWindows = (rows: readonly (readonly string[])[]) =>
  rows.map((row) => row.map((cell) => units[cell] ?? cell)).sort()

describe.each(helmMajors)('with Helm %d', (major) => {
  test.each<[string, GivenValues]>([
    ['the default limits', {}],
    ['other limits', { limits }],
    ['the values of a release without limits', { limits: null, policies: null, domains: null }],
  ])('policies and rules file have the same rules: %s', async (_, given) => {
    const [policies, file] = await Promise.all([
      render(given, major),
      render({ ...given, policies: { enabled: false } }, major),
    ])
    expect(policiesOf(policies)).toHaveLength(6)
    expect(policiesOf(file)).toEqual([])
    const rows = inWindows(compiledRows(policies))
    expect(rows).toEqual(inWindows(fileRows(file)))
    const numbers = Object.values(given['limits'] ?? {}).map(String)
    for (const number of numbers) expect(rows.flat()).toContain(number)
  })

  test.each<[string, GivenValues, string]>([
    [
      'policies beside another source of rules',
      { ratelimit: { policies: { enabled: true }, existingRules: 'mine' } },
      'must be empty if ratelimit.policies.enabled is true',
    ],
    [
      'policies without a controller',
      { ratelimit: { policies: { enabled: true } }, pools: { mode: 'cron' } },
      'pools.mode must be controller if ratelimit.policies.enabled is true',
    ],
    [
      'domains without policies',
      { ratelimit: { domains: [{ domain: 'a', namespaces: ['b'] }] }, pools: { mode: 'cron' } },
      'ratelimit.domains must be empty if the rules do not come from RateLimitPolicies',
    ],
    [
      'a local limit below the limit',
      { edge: { localLimits: { createBurst: 20 } }, ratelimit: { limits } },
      'edge.localLimits.createBurst must be null or at least 21, as ratelimit.limits.createBurst',
    ],
    [
      'more namespaces than a controller watches',
      { ratelimit: { domains: namespacesOf(100) } },
      'ratelimit.domains must name at most 100 namespaces',
    ],
    [
      'more bytes of rules than a limiter accepts',
      { ratelimit: { domains: grantsOf(POLICIES_BYTES_MAX + 1) } },
      'must give its namespaces, with that of the release, at most 3670016 bytes of rules; they ' +
        'have 3670017: lower some bytes',
    ],
  ])('rejects %s', async (_, values, message) => {
    const { exitCode, error } = await tryRender({ major, values: { image: someImage, ...values } })
    expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(message)])
  })
})

/** Grants of two namespaces, with that of the release; all three have `sum` bytes of rules. */
function grantsOf(sum: number) {
  const [bytes, rest] = [1_000_000, sum - 1_000_000 - 36_700]
  return [
    { domain: 'shop', namespaces: ['team-a', 'team-b'], bytes },
    { domain: 'edge', namespaces: ['team-b'], bytes: rest },
    { domain: 'edge', namespaces: ['team-a'] },
  ]
}

test.each([POLICIES_BYTES_MAX, POLICIES_BYTES_MAX + 1])(
  'the chart and the controller agree on %i bytes of rules',
  async (sum) => {
    const domains = grantsOf(sum)
    const values = { image: someImage, ratelimit: { domains } }
    const { exitCode } = await tryRender({ major: 4, values })
    const all = [{ domain: 'edge', namespaces: ['store'] }, ...domains]
    const { problems } = parseGrants(JSON.stringify(all))
    expect([exitCode === 0, problems]).toEqual(
      sum > POLICIES_BYTES_MAX ? [false, [expect.stringContaining(`${sum} bytes`)]] : [true, []],
    )
  },
)

function namespacesOf(count: number) {
  return [{ domain: 'shop', namespaces: Array.from({ length: count }, (_, at) => `team-${at}`) }]
}

test('Envoy’s local limits are the limits, or higher ones in the values', async () => {
  const values = { ratelimit: { limits }, edge: { localLimits: { createBurst: 99 } } }
  const objects = await renderChart({ major: 4, values })
  const bootstrap = objectOf(objects, 'ConfigMap', 'shop-curtail-edge').data?.['envoy.yaml'] ?? ''
  const found = [...bootstrap.matchAll(/max_tokens: (\d+), tokens_per_fill: (\d+)/g)]
  const buckets = found.map(([, burst, perFill]) => [Number(burst), Number(perFill)])
  expect(buckets).toEqual(
    expect.arrayContaining([
      [99, limits.createPerSecond],
      [limits.createTotalBurst, limits.createTotalPerSecond],
      [limits.redirectBurst, limits.redirectPerSecond],
    ]),
  )
})

describe('the controller sends the policies to the rate-limit pods', () => {
  interface Policy {
    readonly ingress: readonly { readonly from?: unknown; readonly ports: unknown }[]
    readonly egress: readonly { readonly to?: unknown; readonly ports: unknown }[]
  }
  const networkPolicy = (objects: readonly KubeObject[], name: string) =>
    objectOf(objects, 'NetworkPolicy', name).spec as unknown as Policy
  const peer = (component: string) => [
    {
      podSelector: {
        matchLabels: {
          'app.kubernetes.io/name': 'curtail',
          'app.kubernetes.io/instance': 'shop',
          'app.kubernetes.io/component': component,
        },
      },
    },
  ]
  const ports = [{ protocol: 'TCP', port: 18_000 }]

  test('at an address that the NetworkPolicies allow, of pods that may not be ready', async () => {
    const objects = await render({})
    const limiter = settingsOf(objects, LIMITER)
    expect(limiter).toMatchObject({
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: `${CONTROLLER}.store.svc.cluster.local:18000`,
      CONFIG_GRPC_XDS_NODE_ID: '{"fieldRef":{"fieldPath":"metadata.name"}}',
      REQUIRED_DOMAIN: 'edge',
    })
    expect(Object.keys(limiter).filter((name) => name.startsWith('RUNTIME_'))).toEqual([])
    expect(objectOf(objects, 'Service', CONTROLLER).spec).toMatchObject({
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      ports: expect.arrayContaining([{ name: 'ads', port: 18_000, targetPort: 'ads' }]),
    })
    const to = { to: peer('controller'), ports }
    expect(networkPolicy(objects, LIMITER).egress).toContainEqual(to)
    const from = { from: peer('ratelimit'), ports }
    expect(networkPolicy(objects, CONTROLLER).ingress).toContainEqual(from)
  })

  test('and stores the last version in a Secret, which the pods mount', async () => {
    const objects = await render({})
    const name = `${LIMITER}-version`
    expect(settingsOf(objects, CONTROLLER)).toMatchObject({ ADS_VERSION_SECRET: name })
    const secret = objectOf(objects, 'Secret', name)
    expect([secret.data, Object.keys(secret)]).toEqual([
      undefined,
      expect.not.arrayContaining(['stringData']),
    ])
    const pod = podsOf(objects).find(({ of }) => of.metadata.name === LIMITER)
    const volume = pod?.spec.volumes?.find((one) => one.secret?.secretName === name)
    expect(volume?.secret).toMatchObject({ optional: true })
    const mount =
      pod && containersOf(pod)[0]?.volumeMounts?.find((one) => one.name === volume?.name)
    const { XDS_FALLBACK_VERSION: path } = settingsOf(objects, LIMITER)
    expect(path).toBe(`${mount?.mountPath}/version.pb.gz`)
  })

  test('also those of other namespaces that may write to a domain', async () => {
    const objects = await renderChart({ major: 4, ...chartCases['policies of several namespaces'] })
    const { RATELIMIT_DOMAINS: domains = '' } = settingsOf(objects, CONTROLLER)
    expect(JSON.parse(domains)).toEqual([
      { domain: 'edge', namespaces: ['store'] },
      { domain: 'edge', namespaces: ['team-a'], below: { key: 'tenant', value: 'a' } },
      { domain: 'shop', namespaces: ['store', 'team-a'], apiKeys: false },
      { domain: 'shop', namespaces: ['keys'], apiKeys: true },
      { domain: 'edge', namespaces: ['keys'], apiKeys: true },
    ])
  })

  test.each(['pools filled by CronJobs', 'the user’s own secrets and rules', 'limits in a file'])(
    'but not with %s',
    async (name) => {
      const objects = await renderChart({ major: 4, ...chartCases[name] })
      expect(policiesOf(objects)).toEqual([])
      expect(settingsOf(objects, LIMITER)).toMatchObject({ RUNTIME_ROOT: '/etc/curtail/runtime' })
      expect(JSON.stringify(objects)).not.toMatch(/18000|ADS_PORT|ratelimit-version/)
    },
  )
})
