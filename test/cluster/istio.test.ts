// The command of docs/drop-in.md for Istio's sample Deployment of envoyproxy/ratelimit, as printed:
// the Deployment, whose own image does not exist here, becomes ready and decides by the same rules.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { createTestClient } from '../kit/ratelimit/grpc-client.ts'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, createNamespace, deleteNamespace, getObject, kubectl } from './cluster.ts'
import { restrictedPod, serviceOf } from './pods.ts'

const NAMESPACE = 'istio-sample'
const COMMAND = 'kubectl set image deployment/ratelimit ratelimit=IMAGE'
const SETUP_MS_MAX = 4 * 60_000
const TEST_MS_MAX = 150_000
const READY_MS_MAX = 30_000

/** The environment of samples/ratelimit/rate-limit-service.yaml. */
const env = {
  LOG_LEVEL: 'debug',
  REDIS_SOCKET_TYPE: 'tcp',
  REDIS_URL: 'redis:6379',
  USE_STATSD: 'false',
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  RUNTIME_WATCH_ROOT: 'false',
  RUNTIME_IGNOREDOTFILES: 'true',
  HOST: '::',
  GRPC_HOST: '::',
}
const rules = `
domain: echo-ratelimit
descriptors:
  - {key: PATH, value: /, rate_limit: {unit: day, requests_per_unit: 1}}
`
const labels = { app: 'ratelimit' }
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ratelimit', namespace: NAMESPACE },
  spec: {
    selector: { matchLabels: labels },
    strategy: { type: 'Recreate' },
    template: {
      metadata: { labels },
      spec: {
        containers: [
          {
            name: 'ratelimit',
            image: 'localhost/envoyproxy/ratelimit:none',
            imagePullPolicy: 'IfNotPresent',
            command: ['/bin/ratelimit'],
            env: Object.entries(env).map(([name, value]) => ({ name, value })),
            ports: [8080, 8081, 6070].map((containerPort) => ({ containerPort })),
            volumeMounts: [{ name: 'config-volume', mountPath: '/data/ratelimit/config' }],
          },
        ],
        volumes: [{ name: 'config-volume', configMap: { name: 'ratelimit-config' } }],
      },
    },
  },
}

beforeAll(async () => {
  await createNamespace(NAMESPACE, 'privileged') // the sample has no security context
  const program = ['/usr/local/bin/redis-server', '--save', '', '--protected-mode', 'no']
  const redis = restrictedPod('redis', { image: 'localhost/redis:test', command: program })
  const service = serviceOf('redis', { port: 6379, targetPort: 6379 })
  await applyObjects(
    ...[redis, service].map((one) => ({
      ...one,
      metadata: { ...one.metadata, namespace: NAMESPACE },
    })),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'ratelimit-config', namespace: NAMESPACE },
      data: { 'config.yaml': rules },
    },
    deployment,
  )
}, SETUP_MS_MAX)

afterAll(() => deleteNamespace(NAMESPACE), SETUP_MS_MAX)

interface Pods {
  readonly items: readonly { readonly status: { readonly podIP?: string } }[]
}

test(
  'the command replaces the image, and the rate limiter applies the rules of the ConfigMap',
  async () => {
    expect(await readFile('docs/drop-in.md', 'utf8')).toContain(`\n${COMMAND}\n`)
    const [, ...args] = COMMAND.replace('IMAGE', 'localhost/curtail:test').split(' ')
    const inNamespace = ['--namespace', NAMESPACE]
    await kubectl(...args, ...inNamespace)
    await kubectl('rollout', 'status', 'deployment/ratelimit', ...inNamespace, '--timeout=90s')
    const { items } = await getObject<Pods>('pods', ...inNamespace, '-l', 'app=ratelimit')
    const address = items.map(({ status }) => status.podIP).join(' ')
    const client = createTestClient(`${address}:8081`, grpc.credentials.createInsecure(), {})
    try {
      const descriptors = [{ entries: [{ key: 'PATH', value: '/' }] }]
      const isDenied = async () => {
        const { overallCode } = await client.call({ domain: 'echo-ratelimit', descriptors })
        return overallCode === 'OVER_LIMIT'
      }
      // The Deployment has no readiness probe: the first calls may find no listener, and the
      // limiter counts locally until it has connected to Redis.
      await waitFor('a denial', () => isDenied().catch(isUnavailable), READY_MS_MAX)
    } finally {
      client.close()
    }
  },
  TEST_MS_MAX,
)

/** Whether a failed call may be retried: false. Throws if it failed for another reason. */
function isUnavailable(error: unknown): boolean {
  if ((error as grpc.ServiceError).code === grpc.status.UNAVAILABLE) return false
  throw error
}
