// The Deployment of envoyproxy/ratelimit that Envoy Gateway renders, with only the image changed:
// it becomes ready, and decides by the rules that an xDS server in Envoy Gateway's place sends.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { parse } from 'yaml'
import {
  gatewayConfig,
  gatewayLabels,
  gatewayRequest,
} from '../kit/ratelimit/envoy-gateway-deployment.ts'
import { createAuthority, type Issued } from '../kit/ratelimit/grpc-certificates.ts'
import { createTestClient } from '../kit/ratelimit/grpc-client.ts'
import { type AdsServer, startAdsServer } from '../kit/ratelimit/scripted-ads-server.ts'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, createNamespace, deleteNamespace, getObject, kubectl } from './cluster.ts'
import { restrictedPod, serviceOf } from './pods.ts'

const NAMESPACE = 'envoy-gateway-system'
const REDIS = 'redis'
const XDS_PORT = 18_001
const SETUP_MS_MAX = 4 * 60_000
const TEST_MS_MAX = 180_000
const READY_MS_MAX = 30_000

const authority = createAuthority('authority of Envoy Gateway')
let gateway: AdsServer

beforeAll(async () => {
  await createNamespace(NAMESPACE)
  await createNamespace(REDIS)
  gateway = await startGateway(authority.issue(['envoy-gateway']))
  await applyRedis()
  await applyGatewayService()
  await applyDeployment(authority.issue(['envoy-ratelimit']))
  const wait = ['--namespace', NAMESPACE, '--timeout=180s']
  await kubectl('rollout', 'status', 'deployment/envoy-ratelimit', ...wait)
}, SETUP_MS_MAX)

afterAll(async () => {
  gateway.close()
  await deleteNamespace(NAMESPACE)
  await deleteNamespace(REDIS)
}, SETUP_MS_MAX)

function startGateway({ cert, key }: Issued): Promise<AdsServer> {
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }
  const trusted = Buffer.from(authority.cert)
  const credentials = grpc.ServerCredentials.createSsl(trusted, [pair], true)
  return startAdsServer({ host: '0.0.0.0', port: XDS_PORT, credentials })
}

async function applyRedis(): Promise<void> {
  const program = ['/usr/local/bin/redis-server', '--save', '', '--protected-mode', 'no']
  const pod = restrictedPod(REDIS, { image: 'localhost/redis:test', command: program })
  const service = serviceOf(REDIS, { port: 6379, targetPort: 6379 })
  await applyObjects(...[pod, service].map((one) => within(REDIS, one)))
}

/** The Service of Envoy Gateway; its endpoint is the server of this process, on the node. */
async function applyGatewayService(): Promise<void> {
  interface Node {
    readonly status: {
      readonly addresses: readonly { readonly type: string; readonly address: string }[]
    }
  }
  const { status } = await getObject<Node>('node', 'node1')
  const address = status.addresses.find(({ type }) => type === 'InternalIP')?.address
  const name = 'envoy-gateway'
  const ports = [{ name: 'ratelimit', port: XDS_PORT }]
  await applyObjects(
    within(NAMESPACE, { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports } }),
    within(NAMESPACE, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports,
      endpoints: [{ addresses: [address] }],
    }),
  )
}

async function applyDeployment({ cert, key }: Issued): Promise<void> {
  const path = new URL('../kit/ratelimit/envoy-gateway-deployment.yaml', import.meta.url)
  const rendered = await readFile(path, 'utf8')
  const image = 'image: localhost/curtail:test'
  const name = 'envoy-ratelimit'
  await applyObjects(
    within(NAMESPACE, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } }),
    within(NAMESPACE, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'envoy-rate-limit' },
      stringData: { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert },
    }),
    parse(rendered.replace(/image: .*ratelimit:master/, image)) as object,
  )
}

function within<T extends { readonly metadata: object }>(namespace: string, object: T) {
  return { ...object, metadata: { ...object.metadata, namespace } }
}

interface Pods {
  readonly items: readonly {
    readonly status: {
      readonly podIP: string
      readonly containerStatuses: readonly { readonly restartCount: number }[]
    }
  }[]
}

async function readPod() {
  const label = 'app.kubernetes.io/name=envoy-ratelimit'
  const { items } = await getObject<Pods>('pods', '--namespace', NAMESPACE, '-l', label)
  expect(items).toHaveLength(1)
  const [pod] = items
  return { address: pod?.status.podIP ?? '', restarts: pod?.status.containerStatuses }
}

test(
  'its pod is ready, applies the rules of the xDS server, and serves metrics',
  async () => {
    const { address, restarts } = await readPod()
    expect(restarts).toMatchObject([{ restartCount: 0 }])
    await waitFor('the stream', () => gateway.streams() === 1, READY_MS_MAX)
    const nonce = gateway.publish({ version: '1', configs: [gatewayConfig] })
    expect(await gateway.requestFor(nonce)).toMatchObject({ versionInfo: '1', errorDetail: null })
    const credentials = grpc.credentials.createSsl(Buffer.from(authority.cert))
    const client = createTestClient(`${address}:8081`, credentials, {
      'grpc.ssl_target_name_override': 'envoy-ratelimit',
    })
    try {
      const isOver = async () => {
        const { overallCode } = await client.call(gatewayRequest)
        return overallCode === 'OVER_LIMIT'
      }
      await waitFor('a denial', isOver)
    } finally {
      client.close()
    }
    const metrics = await (await fetch(`http://${address}:19001/metrics`)).text()
    expect(metrics).toContain(`ratelimit_service_rate_limit_over_limit{${gatewayLabels},`)
  },
  TEST_MS_MAX,
)
