// Values that Kubernetes or a pod would reject after the install, and the lines of the error that
// report them before.
import type { GivenValues } from './chart-render.ts'

const pool = (name: string, schedule: string) => ({ name, target: 200_000, schedule })
const schedules = [
  ['default', '60 * * * *'],
  ['sunday', '0 3 * * 7'],
  ['names', '@fortnightly'],
  ['words', 'every day at three sharp'],
] as const

/** Wrong values. */
export const wrong: GivenValues = {
  baseUrl: 'https://links.example:65536',
  image: { repository: 'registry.example:5000/curtail' },
  global: { imageRegistry: 'https://registry.example' },
  edge: {
    tls: { enabled: true, existingSecret: 'tls' },
    service: {
      ...{ type: 'LoadBalancer', httpPort: 443, httpNodePort: 30_443, httpsNodePort: 30_443 },
      loadBalancerSourceRanges: ['192.0.2.1', '192.0.2.0/33'],
    },
    resources: { requests: { mem: '96Mi' } },
  },
  create: { resources: { requests: { cpu: 2000 } } },
  redirect: { resources: { limits: { cpu: '1Ki' } } },
  cassandra: {
    mode: 'external',
    external: { contactPoints: ['db.example:9042'] },
  },
  pools: { mode: 'cron', list: schedules.map(([name, schedule]) => pool(name, schedule)) },
}

/** The lines of the error, sorted. */
export const wrongLines: readonly string[] = [
  'baseUrl must have a port from 1 to 65535, or none: it is https://links.example:65536',
  'global.imageRegistry must have no scheme: it is https://registry.example',
  ...['192.0.2.1', '192.0.2.0/33'].map(
    (range) =>
      'edge.service.loadBalancerSourceRanges must have networks such as 192.0.2.0/24: ' +
      `one is ${range}`,
  ),
  'edge.service.httpPort and edge.service.httpsPort must differ, as edge.tls.enabled is true: ' +
    'both are 443',
  'edge.service.httpNodePort and edge.service.httpsNodePort must differ, ' +
    'as edge.tls.enabled is true: both are 30443',
  'edge.resources.requests must have only cpu, memory, ephemeral-storage, hugepages-* and names ' +
    'with a domain: mem is none of them',
  ...['create.resources.requests.cpu 2000', 'redirect.resources.limits.cpu 1Ki'].map((line) => {
    const [path = '', cpu = ''] = line.split(' ')
    const allowed = 'at most 1024 cores, with the unit m or none'
    return `${path} must be ${allowed}: it is ${cpu}; append m for thousandths of a core`
  }),
  'cassandra.external.contactPoints must be host names or addresses without a port, ' +
    'which cassandra.external.port sets: one is db.example:9042',
  ...schedules.map(
    ([name, schedule]) =>
      `pools.list: the schedule of ${name} must have a minute, an hour, a day of the month, ` +
      'a month and a day of the week from 0 to 6, such as */5 * * * *, ' +
      `or be a name such as @hourly: it is ${schedule}`,
  ),
]
  .map((line) => `- ${line}`)
  .sort()

const noLimits = { resources: { limits: null } }
const noResources = { resources: null }

/** Values that resemble wrong ones, each of which renders. */
export const unusual: readonly GivenValues[] = [
  {
    baseUrl: 'http://[::1]:65535',
    edge: {
      tls: { enabled: true, existingSecret: 'tls' },
      service: {
        ...{ type: 'LoadBalancer', httpNodePort: 30_443, httpsNodePort: 30_443 },
        loadBalancerSourceRanges: ['0.0.0.0/0', ' 2001:db8::/32 '],
        spec: { type: 'ClusterIP', loadBalancerSourceRanges: [] },
      },
      resources: { requests: { cpu: '500000m', 'example.com/device': 1 } },
    },
    create: { resources: { requests: { cpu: 1024 } } },
    controller: { resources: { limits: { cpu: '2Gi' } } },
    cassandra: {
      mode: 'external',
      external: { contactPoints: ['2001:db8::1', 'db.example'] },
      bundled: null,
      k8ssandra: null,
    },
    ...Object.fromEntries(
      ['cache', 'counters'].map((store) => [
        store,
        { mode: 'external', external: { url: 'redis://store:6379' }, bundled: null },
      ]),
    ),
    pools: {
      mode: 'cron',
      list: [
        pool('default', '*/05 0-23/2 1,015, JAN-jun Mon-FRI'),
        pool('a', '005, 3 ? * 0'),
        pool('b', '@daily'),
      ],
    },
  },
  {
    baseUrl: 'https://a.example:',
    edge: {
      ...noLimits,
      sidecar: noLimits,
      service: { loadBalancerSourceRanges: ['192.0.2.1'] },
    },
    ...Object.fromEntries(
      ['ratelimit', 'create', 'redirect', 'migrate', 'tests'].map((name) => [name, noLimits]),
    ),
    pools: { mode: 'controller', ...noLimits },
    controller: noLimits,
    cassandra: { bundled: { ...noLimits, storage: { size: '512Mi' } }, k8ssandra: null },
    cache: { bundled: noLimits },
    counters: { bundled: noLimits },
    loadTest: { enabled: true, baseUrl: 'http://edge', resources: { requests: null } },
  },
  {
    baseUrl: 'https://a.example:08080',
    edge: { ...noResources, sidecar: noResources },
    ...Object.fromEntries(
      ['ratelimit', 'create', 'redirect', 'migrate', 'tests'].map((name) => [name, noResources]),
    ),
    pools: { mode: 'controller', ...noResources },
    controller: noResources,
    cassandra: { bundled: noResources },
    cache: { bundled: noResources },
    counters: { bundled: noResources },
    loadTest: { enabled: true, baseUrl: 'http://edge', ...noResources },
  },
]
