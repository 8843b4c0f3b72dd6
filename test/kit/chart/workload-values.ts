// The values of pods, their autoscaling and the edge with which tests render the charts. Contains
// no expectation.

const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}

/** Every setting of pods. */
export const allPodValues = {
  annotations: { example: 'yes' },
  labels: { team: 'links' },
  nodeSelector: { disk: 'fast' },
  tolerations: [{ key: 'links', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  topologySpreadConstraints: [
    { topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' },
  ],
  priorityClassName: 'high',
  runtimeClassName: 'gvisor',
  schedulerName: 'mine',
  podSecurityContext: { supplementalGroups: [5555] },
  securityContext: { seLinuxOptions: { level: 's0' } },
  hostAliases: [{ ip: '192.0.2.9', hostnames: ['cassandra.corp'] }],
  dnsPolicy: 'ClusterFirst',
  dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
  startupProbe: { failureThreshold: 90 },
  livenessProbe: { periodSeconds: 20 },
  readinessProbe: { exec: { command: ['/bin/true'] } },
  strategy: { type: 'Recreate' },
  revisionHistoryLimit: 7,
  deploymentAnnotations: { reload: 'auto' },
  serviceAccount: { annotations: { role: 'links' } },
  extraEnv: [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://collector:4318' }],
  extraEnvFrom: [{ secretRef: { name: 'more-env' } }],
  extraArgs: [],
  extraVolumes: [{ name: 'more', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'more', mountPath: '/more' }],
  extraInitContainers: [],
  extraContainers: [
    {
      name: 'shipper',
      image: 'shipper:1',
      command: ['/ship'],
      resources: { requests: { cpu: '1m', memory: '1Mi', 'ephemeral-storage': '1Mi' } },
      securityContext: restricted,
    },
  ],
  spec: { hostUsers: false },
}

/** Autoscaling with targets only. */
export const scaled = { enabled: true, minReplicas: 3, maxReplicas: 9, targetCpuPercent: 50 }
/** The `behavior` of a HorizontalPodAutoscaler. */
export const behavior = { scaleDown: { stabilizationWindowSeconds: 600 } }
/** Further metrics of a HorizontalPodAutoscaler. */
export const metrics = [
  {
    type: 'Pods',
    pods: {
      metric: { name: 'envoy_http_downstream_rq_active' },
      target: { type: 'AverageValue', averageValue: '200' },
    },
  },
]
/** Autoscaling by KEDA. */
const keda = {
  enabled: true,
  pollingInterval: 15,
  fallback: { failureThreshold: 3, replicas: 6 },
  triggers: [
    {
      type: 'prometheus',
      metadata: {
        serverAddress: 'http://prometheus:9090',
        query: 'sum(rate(a[1m]))',
        threshold: '9',
      },
    },
  ],
}

/** The edge behind a Gateway, both with the certificate of a Certificate. */
export const gatewayEdge = {
  trustedHops: 1,
  tls: { enabled: true },
  httpRoute: {
    enabled: true,
    parentRefs: [{ name: 'public', namespace: 'gateways' }],
    filters: [{ type: 'URLRewrite', urlRewrite: { hostname: 'cur.tl' } }],
  },
  gateway: { enabled: true, className: 'cloud', annotations: { lb: 'public' } },
  certificate: {
    enabled: true,
    issuerRef: { name: 'letsencrypt', kind: 'ClusterIssuer' },
    spec: { duration: '2160h' },
  },
  autoscaling: { ...scaled, keda },
}

/** The pods, and what observes them, in two other namespaces than the release. */
export const moved = {
  namespaceOverride: 'links',
  cassandra: { bundled: { replicas: 3 } },
  controller: { rbac: { create: false } },
  podDisruptionBudget: { maxUnavailable: '25%' },
  monitoring: {
    namespace: 'observability',
    monitor: { enabled: true, renderMode: 'alwaysRender' },
    rules: { enabled: true, renderMode: 'alwaysRender' },
    dashboards: { enabled: true },
  },
}
