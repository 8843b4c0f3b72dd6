// API keys from Secrets: a real API server, the controller with only its permissions, a limiter and
// Redis. Each test depends on those before it. No output of any process contains a key.
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { APPLY } from '../../../src/kube/api.ts'
import { canConnect } from '../../dependencies/can-connect.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { applyCrd, RATE_LIMIT_POLICIES_CRD } from '../../kit/kube/apply-crd.ts'
import { type PolicyCluster, startPolicyCluster } from '../../kit/kube/policy-cluster.ts'
import type { RoleProcess } from '../../kit/processes/role-process.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import { closing, startXdsLimiter } from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 180_000
/** A failed list is retried after at most 30 s. */
/** Added and revoked API keys are active within this time. */
const ACTIVE_MS_MAX = 5000
const RETRY_MS_MAX = 45_000

const domains = [{ domain: 'shop', namespaces: ['shop'], apiKeys: true }]
const KEYS = ['partner-alpha-5f1d', 'partner-beta-90ce', 'gold-gamma-7721'] as const
const [ALPHA, BETA, GAMMA] = KEYS
const LABELS = { 'curtail.dev/api-keys': 'true' }
const create = { key: 'route', value: 'create' }
/** With a window that does not end during the test. */
const perYear = (name: string, requests: number) => ({
  limits: [{ name, algorithm: 'FixedWindow', requests, window: '366d' }],
})

let cluster: PolicyCluster
let redis: RedisServer
let controller: RoleProcess
let limiter: Limiter
const stderr: string[] = []

const secretPath = (name = '') => `/api/v1/namespaces/shop/secrets/${name}`
const applySecret = async (name: string, stringData: object, labels: object = LABELS) => {
  const path = secretPath(name)
  const metadata = { name, labels: { ...LABELS, ...labels } }
  const body = { apiVersion: 'v1', kind: 'Secret', metadata, stringData }
  const query = { ...APPLY.query, fieldManager: 'kubectl' }
  await cluster.admin.call({ method: 'PATCH', path, body, query, contentType: APPLY.contentType })
}
/** Removes one value, as `kubectl edit` does. */
const removeValue = async (name: string, key: string) => {
  const contentType = 'application/merge-patch+json'
  const body = { data: { [key]: null } }
  await cluster.admin.call({ method: 'PATCH', path: secretPath(name), body, contentType })
}
/** The verdict of a request of a client with an API key. */
const verdictOf = async (key: string) => {
  const descriptors = [
    { route: 'create', client: '192.0.2.1' },
    { route: 'create', api_key: key },
  ]
  return (await limiter.decide(...descriptors)).overallCode
}
const waitForDecision = (what: string, isMet: () => Promise<boolean>) =>
  waitFor(what, isMet, ACTIVE_MS_MAX)
const waitForMessage = async (name: string, expected: string) => {
  let shown = ''
  await waitFor(expected, async () => {
    const { status = {} } = await cluster.read('shop', name)
    shown = JSON.stringify(status)
    return shown.includes(expected)
  }).catch((error: unknown) => {
    throw new Error(`${name} has ${shown}`, { cause: error })
  })
}

beforeAll(async () => {
  ;[cluster, redis] = await Promise.all([startPolicyCluster(), startRedis()])
  await applyCrd(cluster.admin, RATE_LIMIT_POLICIES_CRD)
  await cluster.createNamespace('shop')
  await cluster.grant('shop')
}, START_MS_MAX)

afterAll(async () => {
  await limiter.stop()
  await Promise.all([cluster.stop(), redis.close()])
})

test(
  'the leader serves no rules until it may read the Secrets',
  async () => {
    controller = await cluster.startController(domains, { LOG_LEVEL: 'debug' })
    controller.child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk.toString()))
    await waitFor('the missing permission to be logged', () =>
      controller.log.some(({ resource }) => resource === 'secrets in shop'),
    )
    expect(await canConnect(cluster.adsPort)).toBe(false)
    await cluster.grantApiKeys('shop')
    const clients = { match: [create, { key: 'client' }], ...perYear('per-client', 1) }
    await cluster.apply('shop', 'clients', clients)
    await waitFor('the port', () => canConnect(cluster.adsPort), RETRY_MS_MAX)
    limiter = await startXdsLimiter(
      cluster.adsPort,
      { LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s', LOG_LEVEL: 'debug' },
      redis.port,
    )
    limiter.child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk.toString()))
  },
  TEST_MS_MAX,
)

test(
  'a policy reports its missing Secret, and its keys have an effect once it exists',
  async () => {
    const secretRef = { name: 'partners' }
    const match = [create, { key: 'api_key', secretRef }]
    const spec = { match, ...perYear('per-key', 3), replaces: ['per-client'] }
    await cluster.apply('shop', 'partners', spec)
    await waitForMessage('partners', 'not found, or it lacks the label')
    expect(await cluster.shown('shop', 'partners')).toBe('SecretNotFound, Programmed, 1/1')
    expect([await verdictOf(ALPHA), await verdictOf(ALPHA)]).toEqual(['OK', 'OVER_LIMIT'])

    await applySecret('partners', { alpha: `${ALPHA}\n`, beta: BETA, bad: 'one\ntwo' })
    await waitForDecision('the limit of the key', async () => (await verdictOf(ALPHA)) === 'OK')
    expect([await verdictOf(ALPHA), await verdictOf(ALPHA)]).toEqual(['OK', 'OK'])
    expect(await verdictOf(ALPHA)).toBe('OVER_LIMIT')
    expect(await verdictOf(BETA)).toBe('OK')
    await waitForMessage(
      'partners',
      'with 2 API keys; values are ignored: Secret partners: the value',
    )
    expect(await cluster.shown('shop', 'partners')).toBe('KeysIgnored, Programmed, 1/1')
    const warnings = ['SecretNotFound', 'KeysIgnored'].map((reason) => `partners Warning ${reason}`)
    await waitFor('the events', async () => {
      const events = await cluster.events('shop')
      return warnings.every((warning) => events.includes(warning))
    })
  },
  TEST_MS_MAX,
)

test(
  'a revoked key has no effect, and the others keep their limit',
  async () => {
    await removeValue('partners', 'beta')
    await waitForDecision('the limit of the client', async () => (await verdictOf(BETA)) !== 'OK')
    await waitForMessage('partners', 'with 1 API key;')
    expect(await verdictOf(ALPHA)).toBe('OVER_LIMIT')
  },
  TEST_MS_MAX,
)

test(
  'a selector adds the keys of each Secret with its labels, until the Secret is deleted',
  async () => {
    const secretSelector = { matchLabels: { tier: 'gold' } }
    const match = [create, { key: 'api_key', secretSelector }]
    await cluster.apply('shop', 'gold', { match, ...perYear('gold', 0), replaces: ['per-client'] })
    await waitForMessage('gold', 'no Secret has the labels tier=gold,')
    await applySecret('gold', { gamma: GAMMA }, { tier: 'gold' })
    const ruleOf = async (key: string) => {
      const descriptor = { route: 'create', api_key: key }
      const { overallCode } = await limiter.decide(descriptor)
      return overallCode
    }
    const isDenied = async () => (await ruleOf(GAMMA)) === 'OVER_LIMIT'
    await waitForDecision('the limit of the key', isDenied)
    await waitForMessage('gold', 'with 1 API key"')
    await cluster.admin.call({ method: 'DELETE', path: secretPath('gold') })
    await waitForDecision('no limit', async () => !(await isDenied()))
    await waitForMessage('gold', 'SecretNotFound')
  },
  TEST_MS_MAX,
)

test('no log, status, event, metric or page contains a key', async () => {
  await verdictOf(ALPHA)
  const pages = await Promise.all(
    [
      ...['/rlconfig', '/stats', '/top', '/explain?domain=shop&descriptor=route%3Dcreate'].map(
        (path) => limiter.debugUrl + path,
      ),
      `${limiter.adminUrl}/metrics`,
      ...['metrics', 'readyz'].map(
        (path) => `http://127.0.0.1:${String(controller.ready['adminPort'])}/${path}`,
      ),
    ].map(async (url) => (await fetch(url, closing)).text()),
  )
  const objects = await Promise.all(
    [
      '/apis/curtail.dev/v1alpha1/namespaces/shop/ratelimitpolicies',
      '/apis/events.k8s.io/v1/namespaces/shop/events',
      '/api/v1/namespaces/curtail/secrets',
    ].map((path) => cluster.admin.call({ method: 'GET', path })),
  )
  const outputs = JSON.stringify([pages, objects, controller.log, limiter.log, stderr])
  const hasHashes = outputs.includes('api_key_sha256:')
  const secrets = KEYS.flatMap((key) => [key, Buffer.from(key).toString('base64').slice(0, 16)])
  expect([hasHashes, secrets.filter((each) => outputs.includes(each))]).toEqual([true, []])
})
