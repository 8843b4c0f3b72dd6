// The values with which tests render the charts: every toggle is on in one case and off in another.
// Contains no expectation.
import { type GivenValues, limiterFolder } from './chart-render.ts'
import { allPodValues, behavior, gatewayEdge, metrics, moved, scaled } from './workload-values.ts'

/** The chart, by default `curtail`, the values and the values files of one case. */
export interface ChartCase {
  readonly chart?: string
  readonly values?: GivenValues
  readonly files?: readonly string[]
}

const digest = `sha256:${'a'.repeat(64)}`

const xds = { server: 'control-plane.gateway:18001', nodeId: 'limits', tlsSecret: 'xds' }
const peer = { podSelector: { matchLabels: { app: 'prometheus' } } }

/** The cases by name. */
export const chartCases: Readonly<Record<string, ChartCase>> = {
  default: {},
  'external stores with secrets and TLS': {
    values: {
      cassandra: {
        mode: 'external',
        localDataCenter: 'dc1',
        replication: 'dc1:3,dc2:3',
        serial: 'global',
        external: { contactPoints: ['10.0.0.1', 'cassandra.data.svc'], port: 9142 },
        auth: { existingSecret: 'login', usernameKey: 'user', passwordKey: 'pass' },
        tls: { enabled: true, existingSecret: 'tls', clientCertificate: true },
      },
      cache: {
        mode: 'external',
        external: { existingSecret: 'cache', sentinelAuthKey: 'sentinels', caSecret: 'redis-ca' },
      },
      counters: {
        mode: 'external',
        external: {
          existingSecret: 'counters',
          type: 'SENTINEL',
          tls: true,
          authKey: 'auth',
          sentinelAuthKey: 'sentinels',
          caSecret: 'redis-ca',
          ports: [6379, 26379],
        },
      },
    },
  },
  'external stores without TLS': {
    values: {
      cassandra: { mode: 'external', external: { contactPoints: ['10.0.0.1'] } },
      cache: { mode: 'external', external: { url: 'redis+cluster://a:6379,b:6379' } },
      counters: { mode: 'external', external: { url: 'redis.data:6379' } },
    },
  },
  k8ssandra: { values: { cassandra: { mode: 'k8ssandra', k8ssandra: { spec: { racks: [] } } } } },
  'TLS at the edge': {
    values: {
      baseUrl: 'https://cur.tl',
      securityContacts: ['mailto:security-team@my-site.example', 'https://my-site.example/a-b'],
      edge: { tls: { enabled: true, existingSecret: 'cert' }, allowance: { enabled: true } },
    },
  },
  'a load balancer with the PROXY protocol': {
    values: {
      edge: {
        proxyProtocol: true,
        failClosed: true,
        tracing: { host: 'collector.tracing', port: 4317, samplePercent: 0.5 },
        service: {
          type: 'LoadBalancer',
          annotations: { lb: 'nlb' },
          labels: { lb: 'nlb' },
          loadBalancerClass: 'nlb',
          loadBalancerIP: '192.0.2.7',
          trafficDistribution: 'PreferClose',
          spec: { sessionAffinity: 'ClientIP' },
          loadBalancerSourceRanges: ['192.0.2.0/24'],
          ipFamilyPolicy: 'PreferDualStack',
        },
      },
    },
  },
  'behind a proxy, by a port of the nodes': {
    values: {
      edge: {
        trustedHops: 2,
        service: { type: 'NodePort', httpNodePort: 30_080, clusterIP: '10.96.0.80' },
        ingress: { enabled: true, className: 'nginx', tlsSecret: 'cert', labels: { a: 'b' } },
      },
    },
  },
  'behind a gateway, with its certificate': {
    values: {
      baseUrl: 'https://cur.tl',
      ownHosts: ['www.cur.tl', 'cur.tl:8443'],
      edge: gatewayEdge,
    },
  },
  autoscaled: {
    values: {
      edge: { autoscaling: { ...scaled, behavior, metrics, targetMemoryPercent: 80 } },
      ratelimit: { autoscaling: scaled },
      create: { autoscaling: scaled },
      redirect: { autoscaling: scaled },
    },
  },
  'one pod of each': {
    values: {
      edge: { replicas: 1 },
      ratelimit: { replicas: 1 },
      create: { replicas: 1 },
      redirect: { replicas: 1 },
      controller: { replicas: 1 },
    },
  },
  'no policies and no budgets': {
    values: { networkPolicy: { enabled: false }, podDisruptionBudget: { enabled: false } },
  },
  'lists in further objects': {
    values: {
      apiKeys: { required: true, extraSecrets: ['partners', 'team.keys'] },
      blockedTargets: { status: 451, extraConfigMaps: ['feed-1', 'feed-2'] },
      tests: { apiKey: { existingSecret: 'test-key', key: 'value' } },
    },
  },
  'policies with peers': {
    values: {
      networkPolicy: {
        clients: [peer],
        metricsFrom: [peer],
        adminFrom: [peer],
        extraEgress: [{ ports: [{ protocol: 'TCP', port: 4318 }] }],
        apiServerPorts: [8443],
        apiServerTo: [{ ipBlock: { cidr: '192.0.2.1/32' } }],
      },
    },
  },
  'pods watched by Prometheus': {
    values: {
      monitoring: {
        monitor: { enabled: true, renderMode: 'alwaysRender', labels: { release: 'prometheus' } },
        rules: {
          enabled: true,
          renderMode: 'alwaysRender',
          runbookUrl: 'https://runbooks.example/',
        },
        dashboards: { enabled: true, folder: 'Links' },
      },
    },
  },
  'services watched by Prometheus': {
    values: {
      monitoring: {
        monitor: {
          ...{ enabled: true, kind: 'ServiceMonitor', renderMode: 'alwaysRender' },
          scrapeTimeout: '5s',
          relabelings: [{ action: 'labeldrop', regex: 'pod' }],
          metricRelabelings: [{ action: 'drop', sourceLabels: ['le'], regex: '0.1' }],
        },
      },
    },
  },
  'in other namespaces, with Roles of an administrator': { values: moved },
  'no Prometheus Operator': {
    values: { monitoring: { monitor: { enabled: true }, rules: { enabled: true } } },
  },
  'several pools': {
    values: {
      create: { codePool: 'shop/Prod_1' },
      pools: {
        list: [
          { name: 'shop/Prod_1', target: 2000 },
          { name: 'a'.repeat(128), target: 100_000_000, headroomHours: 24 },
          { name: 'low', lowWater: 1500, target: 2500, schedule: '@hourly' },
        ],
      },
    },
  },
  'pools of several namespaces and clusters': {
    values: {
      cassandra: {
        mode: 'external',
        external: { contactPoints: ['10.0.0.1'] },
        auth: { existingSecret: 'login' },
      },
      controller: {
        ...{ watchNamespaces: ['one', 'two'], clusterName: 'east', leaseName: 'links' },
        admissionPolicy: { enabled: true, codeSecrets: ['code-of-two'] },
      },
    },
  },
  'pools filled by CronJobs': {
    values: {
      create: { codePool: 'shop/Prod_1' },
      pools: {
        mode: 'cron',
        list: [
          { name: 'shop/Prod_1', target: 1000, schedule: '@hourly' },
          { name: 'a'.repeat(128), target: 2000 },
        ],
      },
    },
  },
  'a load test': {
    values: {
      edge: { trustedHops: 1 },
      loadTest: { enabled: true, shape: 'peak', env: { RATE: '500', CLIENTS: '100' } },
    },
  },
  'a load test of another service': {
    values: {
      loadTest: {
        ...{ enabled: true, scenario: 'code-walker', baseUrl: 'https://staging.example' },
        apiKey: { existingSecret: 'staging-key', key: 'value' },
      },
    },
  },
  'pools filled by another process': { values: { pools: { mode: 'off' } } },
  'the user’s own rules, checked first': {
    values: { ratelimit: { rules: 'domain: edge\ndescriptors: []\n' } },
  },
  'the user’s own secrets and rules': {
    values: {
      admin: { existingSecret: 'admin', key: 'bearer' },
      pools: { codeSecret: { existingSecret: 'code', key: 'bytes' } },
      ratelimit: { existingRules: 'rules' },
      serviceAccountAnnotations: { cloud: 'role' },
    },
  },
  'images by digest from another registry': {
    values: {
      global: { imageRegistry: 'mirror.example:5000/all', imagePullSecrets: [{ name: 'mirror' }] },
      image: { repository: 'registry.example.com/curtail', digest },
      imagePullSecrets: [{ name: 'ours' }],
    },
  },
  'all pod values': { values: { podDefaults: allPodValues } },
  'pods of one workload': {
    values: {
      redirect: { pod: allPodValues },
      cassandra: { bundled: { replicas: 3, pod: { priorityClassName: 'highest' } } },
    },
  },
  'the user’s own labels and objects': {
    values: {
      fullnameOverride: 'links',
      commonLabels: { owner: 'sre' },
      commonAnnotations: { note: 'hi' },
      extraObjects: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { a: 'b' } },
        'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "{{ .Release.Name }}-two" }\n',
      ],
    },
  },
  'rules from an xDS server': { values: { ratelimit: { xds } } },
  'limits in a file': { values: { ratelimit: { policies: { enabled: false } } } },
  'policies of several namespaces': {
    values: {
      ratelimit: {
        policies: { enabled: true },
        domains: [
          { domain: 'edge', namespaces: ['team-a'], below: { key: 'tenant', value: 'a' } },
          { domain: 'shop', namespaces: ['store', 'team-a'], apiKeys: false },
          { domain: 'shop', namespaces: ['keys'], apiKeys: true },
          { domain: 'edge', namespaces: ['keys'], apiKeys: true },
        ],
      },
    },
  },
  'the rate limiter alone': {
    chart: limiterFolder,
    values: { ratelimit: { rules: 'domain: shop\ndescriptors: []\n' } },
  },
  'the rate limiter alone, with its own rules, one pod and no policies': {
    chart: limiterFolder,
    values: {
      fullnameOverride: 'limits',
      ratelimit: { existingRules: 'rules', replicas: 1 },
      networkPolicy: { enabled: false },
      extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' } }],
    },
  },
  'the rate limiter alone, with rules by xDS and an external Redis': {
    chart: limiterFolder,
    values: {
      podDefaults: allPodValues,
      ratelimit: { xds: { ...xds, ports: [15_010] }, autoscaling: scaled },
      counters: { mode: 'external', external: { existingSecret: 'counters', authKey: 'auth' } },
      networkPolicy: { clients: [peer], metricsFrom: [peer] },
      monitoring: { monitor: { enabled: true, renderMode: 'alwaysRender' } },
    },
  },
  staging: { files: ['values-staging.yaml'] },
  production: { files: ['values-production.yaml'] },
}
