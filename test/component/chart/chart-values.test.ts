// The errors of Helm for invalid values.
import { describe, expect, test } from '@jest/globals'
import { helmMajors } from '../../dependencies/helm.ts'
import { compatible, contradicting, contradictions } from '../../kit/chart/contradicting-values.ts'
import { type GivenValues, someImage, tryRender } from '../../kit/chart/chart-render.ts'

/** Invalid values, with the path and the allowed values that the error must name. */
interface Rejected {
  readonly values: GivenValues
  readonly path: string
  readonly allowed: RegExp
}

const rejected: readonly [string, Rejected][] = [
  [
    'no image',
    {
      values: { image: { repository: '' } },
      path: 'image.repository',
      allowed: /does not match pattern/i,
    },
  ],
  [
    'an image in capitals',
    { values: { image: { repository: 'A' } }, path: 'image.repository', allowed: /pattern/ },
  ],
  ['an unknown value', { values: { edges: {} }, path: 'edges', allowed: /not allowed/ }],
  [
    'an unknown value below',
    { values: { edge: { replica: 3 } }, path: 'edge.replica', allowed: /not allowed/ },
  ],
  [
    'an unknown kind of Service',
    {
      values: { edge: { service: { type: 'External' } } },
      path: 'edge.service.type',
      allowed: /ClusterIP.*NodePort.*LoadBalancer/,
    },
  ],
  [
    'negative hops',
    { values: { edge: { trustedHops: -1 } }, path: 'edge.trustedHops', allowed: /\b0\b/ },
  ],
  [
    'too many hops',
    { values: { edge: { trustedHops: 11 } }, path: 'edge.trustedHops', allowed: /\b10\b/ },
  ],
  [
    'a string for a number',
    { values: { create: { replicas: 'two' } }, path: 'create.replicas', allowed: /integer/ },
  ],
  [
    'a string for a boolean',
    { values: { edge: { failClosed: 'yes' } }, path: 'edge.failClosed', allowed: /boolean/ },
  ],
  [
    'a base URL with a path',
    { values: { baseUrl: 'https://cur.tl/x' }, path: 'baseUrl', allowed: /pattern/ },
  ],
  [
    'a security contact with two mailboxes',
    {
      values: { securityContacts: ['mailto:a@b@c'] },
      path: 'securityContacts.0',
      allowed: /pattern/,
    },
  ],
  [
    'another status',
    { values: { redirect: { status: 307 } }, path: 'redirect.status', allowed: /301.*302/ },
  ],
  [
    'an unknown status of blocked targets',
    {
      values: { blockedTargets: { status: 403 } },
      path: 'blockedTargets.status',
      allowed: /404.*410.*451/,
    },
  ],
  [
    'an invalid name of a Secret',
    {
      values: { apiKeys: { extraSecrets: ['A'] } },
      path: 'apiKeys.extraSecrets.0',
      allowed: /pattern/,
    },
  ],
  [
    'a pool without a target',
    {
      values: { pools: { list: [{ name: 'a' }] } },
      path: 'pools.list.0',
      allowed: /target/,
    },
  ],
  [
    'an unknown mode',
    { values: { pools: { mode: 'jobs' } }, path: 'pools.mode', allowed: /controller.*cron.*off/ },
  ],
  [
    'a low water below a block of codes',
    {
      values: { pools: { list: [{ name: 'a', target: 5000, lowWater: 999 }] } },
      path: 'pools.list.0.lowWater',
      allowed: /1,?000/,
    },
  ],
  [
    'no controller',
    { values: { controller: { replicas: 0 } }, path: 'controller.replicas', allowed: /\b1\b/ },
  ],
  [
    'an invalid namespace',
    {
      values: { controller: { watchNamespaces: ['A'] } },
      path: 'controller.watchNamespaces.0',
      allowed: /pattern/,
    },
  ],
  [
    'an unknown store',
    {
      values: { cassandra: { mode: 'mysql' } },
      path: 'cassandra.mode',
      allowed: /bundled.*external.*k8ssandra/,
    },
  ],
  [
    'a password in a URL',
    {
      values: { cache: { external: { url: 'redis://:secret@host' } } },
      path: 'cache.external.url',
      allowed: /pattern/,
    },
  ],
  [
    'no port',
    {
      values: { counters: { external: { ports: [] } } },
      path: 'counters.external.ports',
      allowed: /1/,
    },
  ],
  [
    'a keyspace in capitals',
    {
      values: { cassandra: { keyspace: 'Curtail' } },
      path: 'cassandra.keyspace',
      allowed: /pattern/,
    },
  ],
  [
    'an unknown field of pods',
    {
      values: { redirect: { pod: { node: 'a' } } },
      path: 'redirect.pod.node',
      allowed: /not allowed/,
    },
  ],
  [
    'invalid resources',
    {
      values: { edge: { resources: { requests: { cpu: 'lots' } } } },
      path: 'edge.resources.requests.cpu',
      allowed: /pattern/,
    },
  ],
  [
    'a quantity with a unit that Kubernetes does not know',
    {
      values: { create: { resources: { limits: { memory: '256Ki2' } } } },
      path: 'create.resources.limits.memory',
      allowed: /pattern/,
    },
  ],
  [
    'a negative quantity',
    {
      values: { create: { resources: { requests: { cpu: -1 } } } },
      path: 'create.resources.requests.cpu',
      allowed: /\b0\b/,
    },
  ],
  [
    'an unknown log level',
    { values: { logLevel: 'loud' }, path: 'logLevel', allowed: /trace.*silent/ },
  ],
]

/** Whether the error names the path: Helm 3 prints it unchanged, Helm 4 as a JSON pointer. */
function namesPath(error: string, path: string): boolean {
  const segments = path.split('.')
  const last = segments.at(-1) ?? ''
  const parents = segments.slice(0, -1)
  return [
    path, // Helm 3
    `'/${segments.join('/')}'`, // Helm 4
    `${parents.join('.') || '(root)'}: Additional property ${last}`,
    `'${parents.length === 0 ? '' : `/${parents.join('/')}`}': additional properties '${last}'`,
  ].some((form) => error.includes(form))
}

describe.each(helmMajors)('Helm %d rejects', (major) => {
  test.each(rejected)(
    '%s',
    async (_, { values, path, allowed }) => {
      const { exitCode, error } = await tryRender({
        major,
        values: { image: someImage, ...values },
      })
      expect(exitCode).not.toBe(0)
      expect([error, namesPath(error, path)]).toEqual([error, true])
      expect(error).toMatch(allowed)
    },
    30_000,
  )

  test('contradictory values, and reports all errors together', async () => {
    const values = {
      image: someImage,
      edge: { tls: { enabled: true } },
      ratelimit: { rules: 'domain: edge', existingRules: 'mine' },
      redirect: { autoscaling: { minReplicas: 9, maxReplicas: 3, enabled: true } },
      create: { codePool: 'other' },
      cassandra: { mode: 'external', tls: { enabled: true } },
      cache: { mode: 'external' },
      counters: { mode: 'external', external: { url: 'redis:6379', authKey: 'auth' } },
      pools: {
        list: [
          { name: 'a', target: 5000, lowWater: 4001 },
          { name: 'a', target: 5000 },
        ],
      },
      controller: { watchNamespaces: ['store'], admissionPolicy: { enabled: true } },
      podDefaults: {
        extraVolumes: [{ name: 'logs', hostPath: { path: '/var/log' } }],
        extraInitContainers: [{ name: 'tune', securityContext: { privileged: true } }],
      },
    }
    const { exitCode, error } = await tryRender({ major, values })
    expect(exitCode).not.toBe(0)
    const messages = [
      'edge.tls.existingSecret must name a Secret',
      'ratelimit.rules must be empty',
      'redirect.autoscaling.minReplicas must not be above redirect.autoscaling.maxReplicas, 3',
      'cassandra.external.contactPoints must name 1 to 64 hosts',
      'cassandra.tls.existingSecret must name a Secret',
      'either cache.external.url or cache.external.existingSecret must be given',
      'counters.external.existingSecret must name the Secret',
      'pools.list must name each pool once: a occurs twice',
      'create.codePool must be one of pools.list (a): it is other',
      'the target of a must be at least 5001, 1,000 above its lowWater',
      'controller.watchNamespaces must not name store',
      'as controller.admissionPolicy.enabled is true: logs is none of them',
      'as controller.admissionPolicy.enabled is true: tune has one',
    ]
    for (const message of messages) expect(error).toContain(message)
  }, 30_000)

  test('memory that does not suffice, and limits below others', async () => {
    const values = { image: someImage, ...contradicting }
    const { exitCode, error } = await tryRender({ major, values })
    const lines = error.split('\n').filter((line) => line.startsWith('- '))
    expect([exitCode === 0, lines.sort()]).toEqual([false, contradictions])
  }, 30_000)

  test.each(compatible)('not %s', async (_, values) => {
    const { exitCode, error } = await tryRender({ major, values: { image: someImage, ...values } })
    expect([exitCode, error]).toEqual([0, ''])
  })

  test.each([
    ['domain: shop\ndescriptors: []', 'must have the domain edge, which Envoy sends: with shop'],
    ['descriptors: []', 'must have the domain edge, which Envoy sends: with none'],
    ['domain: edge\ndescriptor: []', 'must have a list of descriptors'],
    ['domain: edge\n descriptors: [', 'must be YAML: '],
  ])('rules that would admit everything: %j', async (rules, message) => {
    const values = { image: someImage, ratelimit: { rules } }
    const { exitCode, error } = await tryRender({ major, values })
    expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(message)])
  })

  test('a controller that watches namespaces whose pods cannot reach its stores', async () => {
    const values = { image: someImage, controller: { watchNamespaces: ['other'] } }
    const { exitCode, error } = await tryRender({ major, values })
    expect(exitCode).not.toBe(0)
    expect(error).toContain('must be empty if cassandra.mode is bundled')
  }, 30_000)

  test('a cluster without the required kinds, if renderMode is failIfMissing', async () => {
    const rules = { enabled: true, renderMode: 'failIfMissing' }
    const values = { image: someImage, monitoring: { rules } }
    const { exitCode, error } = await tryRender({ major, values })
    expect(exitCode).not.toBe(0)
    expect(error).toContain('has no kind PrometheusRule')
  }, 30_000)
})
