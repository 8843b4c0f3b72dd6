// What is in front of the edge: its Service, an Ingress, a Gateway with its route and certificate.
// And what scales the pods: a HorizontalPodAutoscaler, or KEDA.
import { beforeAll, describe, expect, test } from '@jest/globals'
import { chartCases } from '../../kit/chart/chart-cases.ts'
import {
  type GivenValues,
  type KubeObject,
  objectOf,
  renderChart,
  someImage,
  tryRender,
} from '../../kit/chart/chart-render.ts'

const EDGE = 'shop-curtail-edge'
const certificate = { enabled: true, issuerRef: { name: 'letsencrypt' } }
const classed = { enabled: true, className: 'cloud' }

let plain: readonly KubeObject[]
let gateway: readonly KubeObject[]

const renderCase = (name: string) => renderChart({ major: 4, ...chartCases[name] })

beforeAll(async () => {
  plain = await renderChart({ major: 4 })
  gateway = await renderCase('behind a gateway, with its certificate')
}, 30_000)

test('by default the chart creates nothing in front of the Service of the edge', () => {
  const kinds = ['Ingress', 'Gateway', 'HTTPRoute', 'Certificate', 'ScaledObject']
  expect(plain.filter(({ kind }) => kinds.includes(kind))).toEqual([])
  expect(Object.keys(objectOf(plain, 'Service', EDGE).spec ?? {}).sort()).toEqual([
    'ports',
    'selector',
    'type',
  ])
})

describe('the Service', () => {
  test('has the fields of the values', async () => {
    const balanced = await renderCase('a load balancer with the PROXY protocol')
    const { spec, metadata } = objectOf(balanced, 'Service', EDGE)
    expect(metadata.labels).toMatchObject({ lb: 'nlb' })
    expect(spec).toMatchObject({
      ...{ type: 'LoadBalancer', loadBalancerIP: '192.0.2.7', sessionAffinity: 'ClientIP' },
      ...{ trafficDistribution: 'PreferClose', externalTrafficPolicy: 'Local' },
    })
    const onNodes = await renderCase('behind a proxy, by a port of the nodes')
    expect(objectOf(onNodes, 'Service', EDGE).spec).toMatchObject({
      clusterIP: '10.96.0.80',
      ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30_080 }],
    })
  })

  test('keeps the labels that select pods, whatever labels the values set', async () => {
    const prefix = 'app.kubernetes.io'
    const chosen = { [`${prefix}/part-of`]: 'links', [`${prefix}/version`]: '7' }
    const labels = { ...chosen, [`${prefix}/name`]: 'mine', [`${prefix}/managed-by`]: 'me' }
    const values = { commonLabels: labels, edge: { service: { labels } } }
    const { metadata } = objectOf(await renderChart({ major: 4, values }), 'Service', EDGE)
    expect(metadata.labels).toMatchObject(chosen)
    expect(metadata.labels?.[`${prefix}/name`]).toBe('curtail')
    expect(metadata.labels?.[`${prefix}/managed-by`]).toBe('Helm')
  })
})

describe('an Ingress', () => {
  test('sends every request for the hosts of the service to the edge', async () => {
    const edge = { trustedHops: 1, ingress: { enabled: true }, certificate }
    const ownHosts = ['WWW.cur.tl', 'cur.tl:8443']
    const values = { baseUrl: 'https://Cur.tl.', ownHosts, edge }
    const { spec } = objectOf(await renderChart({ major: 4, values }), 'Ingress', EDGE)
    const backend = { service: { name: EDGE, port: { number: 80 } } }
    const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] }
    const hosts = ['cur.tl', 'www.cur.tl']
    expect(spec).toEqual({
      tls: [{ secretName: `${EDGE}-tls`, hosts }],
      rules: hosts.map((host) => ({ host, http })),
    })
  })
})

describe('a Gateway', () => {
  test('terminates TLS with the Certificate, which the edge uses too', () => {
    const secretName = `${EDGE}-tls`
    const dnsNames = ['cur.tl', 'www.cur.tl']
    expect(objectOf(gateway, 'Certificate', EDGE).spec).toMatchObject({ secretName, dnsNames })
    const tls = { mode: 'Terminate', certificateRefs: [{ name: secretName }] }
    expect(objectOf(gateway, 'Gateway', EDGE).spec).toEqual({
      gatewayClassName: 'cloud',
      listeners: [
        { name: 'http', protocol: 'HTTP', port: 80 },
        { name: 'https', protocol: 'HTTPS', port: 443, tls },
      ],
    })
    const deployment = JSON.stringify(objectOf(gateway, 'Deployment', EDGE))
    expect(deployment).toContain(`"secretName":"${secretName}"`)
  })

  test('forwards HTTPS to the edge, and redirects HTTP to HTTPS', () => {
    expect(objectOf(gateway, 'HTTPRoute', EDGE).spec).toMatchObject({
      parentRefs: [
        { name: EDGE, sectionName: 'https' },
        { name: 'public', namespace: 'gateways' },
      ],
      hostnames: ['cur.tl', 'www.cur.tl'],
      rules: [{ backendRefs: [{ name: EDGE, port: 80 }], filters: [{ type: 'URLRewrite' }] }],
    })
    const requestRedirect = { scheme: 'https', statusCode: 301 }
    expect(objectOf(gateway, 'HTTPRoute', `${EDGE}-to-https`).spec).toMatchObject({
      parentRefs: [{ name: EDGE, sectionName: 'http' }],
      rules: [{ filters: [{ type: 'RequestRedirect', requestRedirect }] }],
    })
  })

  test('without TLS forwards HTTP to the edge', async () => {
    const edge = { trustedHops: 1, httpRoute: { enabled: true }, gateway: classed }
    const objects = await renderChart({ major: 4, values: { baseUrl: 'http://cur.tl', edge } })
    const routes = objects.filter(({ kind }) => kind === 'HTTPRoute')
    expect(routes.map(({ spec }) => spec?.['parentRefs'])).toEqual([
      [{ name: EDGE, sectionName: 'http' }],
    ])
  })
})

test('a Certificate needs no values that earlier releases do not have', async () => {
  const absent = { secretName: null, annotations: null, labels: null, spec: null }
  const issuerRef = { name: 'letsencrypt', kind: null, group: null }
  const edge = { certificate: { ...absent, enabled: true, issuerRef } }
  const objects = await renderChart({ major: 4, values: { edge } })
  expect(objectOf(objects, 'Certificate', EDGE).spec).toEqual({
    ...{ secretName: `${EDGE}-tls`, dnsNames: ['localhost'], issuerRef: { name: 'letsencrypt' } },
  })
})

describe('the chart rejects', () => {
  const expectFaults = async (values: GivenValues, messages: readonly string[]) => {
    const { exitCode, error } = await tryRender({
      major: 4,
      values: { image: someImage, ...values },
    })
    expect(exitCode).not.toBe(0)
    for (const message of messages) expect(error).toContain(message)
    expect(error.match(/^- /gm)).toHaveLength(messages.length)
  }
  const hops = (name: string) => `edge.trustedHops must be at least 1 if edge.${name}.enabled`

  test.each<[string, GivenValues, readonly string[]]>([
    [
      'a proxy that is not a trusted hop, and what is incomplete',
      {
        ...{ ingress: { enabled: true }, httpRoute: { enabled: true } },
        certificate: { enabled: true },
        autoscaling: { keda: { enabled: true } },
      },
      [
        ...[hops('ingress'), hops('httpRoute')],
        'edge.httpRoute.parentRefs must name a Gateway if edge.gateway.enabled is false',
        'edge.certificate.issuerRef.name must name an issuer',
        'edge.autoscaling.enabled must be true if edge.autoscaling.keda.enabled',
      ],
    ],
    [
      'a Gateway without a class and without a route, and TLS without a Secret',
      {
        ...{ gateway: { enabled: true }, tls: { enabled: true } },
        autoscaling: { enabled: true, metrics: [{ type: 'Pods' }], keda: { enabled: true } },
      },
      [
        'edge.gateway.className must name a GatewayClass',
        'edge.httpRoute.enabled must be true if edge.gateway.enabled',
        'baseUrl must have no port if edge.gateway.enabled is true',
        'edge.tls.existingSecret must name a Secret',
        'edge.autoscaling.metrics must be empty if edge.autoscaling.keda.enabled',
      ],
    ],
    [
      'autoscaling without a target',
      { autoscaling: { enabled: true, targetCpuPercent: null, keda: { enabled: true } } },
      ['edge.autoscaling must have a target for CPU or memory'],
    ],
    [
      'a fallback of KEDA without a trigger to which it applies',
      {
        autoscaling: {
          enabled: true,
          keda: { enabled: true, fallback: { replicas: 6 }, triggers: [{ type: 'memory' }] },
        },
      },
      ['edge.autoscaling.keda.fallback must be empty if all triggers are targets'],
    ],
  ])('%s', async (_, edge, messages) => {
    await expectFaults({ edge }, messages)
  })

  test('hosts that are not DNS names, and more hosts than an HTTPRoute can have', async () => {
    const invalid = ['192.0.2.1', '[2001:db8::1]:8443', '*.cur.tl', 'a_b.tl', 'ü.tl']
    const more = Array.from({ length: 12 }, (_, index) => `host-${index}.tl`)
    const edge = { trustedHops: 1, httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] } }
    const values = { baseUrl: 'https://cur.tl', ownHosts: [...invalid, ...more] }
    const named = invalid.map((host) => host.replace(':8443', ''))
    await expectFaults({ ...values, edge }, [
      ...named.map((host) => `edge.httpRoute or edge.certificate is enabled: ${host} is none`),
      'must have at most 16 hosts if edge.httpRoute.enabled is true: they have 18',
    ])
    await renderChart({ major: 4, values })
  })

  test('a Gateway that does not serve baseUrl', async () => {
    const edge = { trustedHops: 1, httpRoute: { enabled: true }, gateway: classed }
    await expectFaults({ baseUrl: 'https://cur.tl:8443', edge }, [
      'edge.gateway.tlsSecret must name a Secret, or edge.certificate.enabled must be true',
      'baseUrl must have no port if edge.gateway.enabled is true',
    ])
    const secured = { ...edge, gateway: { ...classed, tlsSecret: 'cert' } }
    await renderChart({ major: 4, values: { baseUrl: 'https://cur.tl:443', edge: secured } })
  })

  test('no Gateway that redirects short links to HTTPS, but warns', async () => {
    const warnings = `apiVersion: v1
kind: ConfigMap
metadata: { name: warnings }
data: { warnings: {{ include "curtail.warnings" . | quote }} }
`
    const edge = { trustedHops: 1, httpRoute: { enabled: true }, gateway: classed, certificate }
    const warningsOf = async (baseUrl: string) => {
      const values = { baseUrl, edge, extraObjects: [warnings] }
      const { data } = objectOf(await renderChart({ major: 4, values }), 'ConfigMap', 'warnings')
      return data?.['warnings']
    }
    const warning = 'edge.gateway has a certificate: it redirects every short link to HTTPS'
    expect(await warningsOf('http://cur.tl')).toContain(warning)
    expect(await warningsOf('https://cur.tl')).not.toContain(warning)
  })

  test('no untrusted Ingress if its controller sends the PROXY protocol', async () => {
    const edge = { proxyProtocol: true, ingress: { enabled: true } }
    const objects = await renderChart({ major: 4, values: { edge } })
    expect(objectOf(objects, 'Ingress', EDGE).kind).toBe('Ingress')
    expect(objectOf(gateway, 'Gateway', EDGE).kind).toBe('Gateway')
  })
})

describe('autoscaling', () => {
  test('has targets for CPU and memory, further metrics, and a behavior', async () => {
    const { spec } = objectOf(await renderCase('autoscaled'), 'HorizontalPodAutoscaler', EDGE)
    const { metrics, behavior } = spec as { metrics: object[]; behavior: object }
    const target = (name: string, averageUtilization: number) => ({
      type: 'Resource',
      resource: { name, target: { type: 'Utilization', averageUtilization } },
    })
    expect(metrics).toEqual([
      target('cpu', 50),
      target('memory', 80),
      expect.objectContaining({ type: 'Pods' }),
    ])
    expect(behavior).toEqual({ scaleDown: { stabilizationWindowSeconds: 600 } })
  })

  test('by KEDA has the same targets and bounds, and no HorizontalPodAutoscaler', () => {
    const autoscalers = gateway.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
    expect(autoscalers).toEqual([])
    expect(objectOf(gateway, 'ScaledObject', EDGE).spec).toMatchObject({
      scaleTargetRef: { kind: 'Deployment', name: EDGE },
      ...{ minReplicaCount: 3, maxReplicaCount: 9, pollingInterval: 15 },
      fallback: { failureThreshold: 3, replicas: 6 },
      triggers: [
        { type: 'cpu', metricType: 'Utilization', metadata: { value: '50' } },
        { type: 'prometheus' },
      ],
    })
    expect(objectOf(gateway, 'Deployment', EDGE).spec).not.toHaveProperty('replicas')
  })
})

test('monitors relabel targets and samples', async () => {
  const monitored = await renderCase('services watched by Prometheus')
  const monitors = monitored.filter(({ kind }) => kind === 'ServiceMonitor')
  expect(monitors.length).toBeGreaterThan(3)
  for (const { spec } of monitors) {
    expect(spec?.['endpoints']).toMatchObject([
      {
        scrapeTimeout: '5s',
        relabelings: [{ action: 'labeldrop' }],
        metricRelabelings: [{ action: 'drop' }],
      },
    ])
  }
})
