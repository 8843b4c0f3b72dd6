// RateLimitPolicies from their creation to the first denial: a real API server, the controller with
// only its permissions, two limiters and Redis. Each test depends on those before it.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { canConnect } from '../../dependencies/can-connect.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { applyCrd, RATE_LIMIT_POLICIES_CRD } from '../../kit/kube/apply-crd.ts'
import { type PolicyCluster, startPolicyCluster } from '../../kit/kube/policy-cluster.ts'
import type { RoleProcess } from '../../kit/processes/role-process.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import { startXdsLimiter } from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
const TEST_MS_MAX = 180_000
/** A failed list is retried after at most 30 s. */
const RETRY_MS_MAX = 45_000
/** While nothing changes, the controller writes nothing for this time. */
const REST_MS = 3000

const domains = [
  { domain: 'shop', namespaces: ['shop'] },
  { domain: 'shop', below: { key: 'tenant', value: 'a' }, namespaces: ['tenant-a'] },
]
/** With a window that does not end during the test. */
const perYear = (name: string, requests: number) => ({
  limits: [{ name, algorithm: 'FixedWindow', requests, window: '366d' }],
})
const creates = { match: [{ key: 'route', value: 'create' }], ...perYear('creates', 2) }

let cluster: PolicyCluster
let redis: RedisServer
let controller: RoleProcess
const limiters: Limiter[] = []

beforeAll(async () => {
  ;[cluster, redis] = await Promise.all([startPolicyCluster(), startRedis()])
  for (const namespace of ['shop', 'tenant-a']) {
    await cluster.createNamespace(namespace)
    await cluster.grant(namespace)
  }
}, START_MS_MAX)

afterAll(async () => {
  await Promise.all(limiters.map((limiter) => limiter.stop()))
  await Promise.all([cluster.stop(), redis.close()])
})

const startLimiter = async (node: string) => {
  const env = { CONFIG_GRPC_XDS_NODE_ID: node, LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s' }
  const limiter = await startXdsLimiter(cluster.adsPort, env, redis.port)
  limiters.push(limiter)
  return limiter
}
const verdictsOf = async (descriptor: Readonly<Record<string, string>>) => {
  const verdicts = limiters.map((limiter) => limiter.decide(descriptor))
  return (await Promise.all(verdicts)).map(({ overallCode }) => overallCode)
}
const isDenied = async (descriptor: Readonly<Record<string, string>>) =>
  (await verdictsOf(descriptor)).every((verdict) => verdict === 'OVER_LIMIT')
const waitForStatus = async (namespace: string, name: string, expected: string) => {
  let shown = ''
  await waitFor(`${name}: ${expected}`, async () => {
    shown = await cluster.shown(namespace, name)
    return shown === expected
  }).catch((error: unknown) => {
    throw new Error(`${name} has ${shown}`, { cause: error })
  })
}
const hasLogged = (role: RoleProcess, msg: string) => role.log.some((line) => line['msg'] === msg)
const isServing = () => canConnect(cluster.adsPort)
/** Writes of objects other than the Lease. */
const writesOf = async (role: RoleProcess) => {
  const url = `http://127.0.0.1:${String(role.ready['adminPort'])}/metrics`
  const lines = (await (await fetch(url)).text()).split('\n')
  const writes = lines.filter((line) =>
    /^rest_client_requests_total\{.*method="(PATCH|POST)"/.test(line),
  )
  return writes.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test(
  'the leader serves no rules before the CRD exists',
  async () => {
    controller = await cluster.startController(domains)
    await waitFor('leadership', () => hasLogged(controller, 'acquired leadership'))
    await waitFor('the missing CRD to be logged', () =>
      controller.log.some(({ resource }) => resource === 'ratelimitpolicies in shop'),
    )
    expect(await isServing()).toBe(false)
    await applyCrd(cluster.admin, RATE_LIMIT_POLICIES_CRD)
    await cluster.apply('shop', 'creates', creates)
    await waitFor('the port for limiters', isServing, RETRY_MS_MAX)
  },
  TEST_MS_MAX,
)

test(
  'both limiters enforce a policy, and its status counts them',
  async () => {
    await Promise.all(['limiter-1', 'limiter-2'].map(startLimiter))
    expect(await verdictsOf({ route: 'create' })).toEqual(['OK', 'OK'])
    expect(await isDenied({ route: 'create' })).toBe(true)
    await waitForStatus('shop', 'creates', 'Accepted, Programmed, 2/2')
    const { status } = await cluster.read('shop', 'creates')
    expect(status?.observedGeneration).toBe(1)
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['Accepted', 'Programmed'])
  },
  TEST_MS_MAX,
)

test(
  'a policy that conflicts or is not allowed reports the cause, and the others stay active',
  async () => {
    await cluster.apply('shop', 'same', { ...creates, ...perYear('same', 1000) })
    const elsewhere = { match: [{ key: 'tenant', value: 'b' }], ...perYear('other', 0) }
    await cluster.apply('tenant-a', 'elsewhere', elsewhere)
    await cluster.apply('tenant-a', 'own', {
      match: [{ key: 'tenant', value: 'a' }],
      ...perYear('own', 0),
    })
    await waitForStatus('tenant-a', 'own', 'Accepted, Programmed, 2/2')
    await waitForStatus('shop', 'same', 'Conflicted, NotAccepted, 0/0')
    await waitForStatus('tenant-a', 'elsewhere', 'NotAllowed, NotAccepted, 0/0')
    const messageOf = async (namespace: string, name: string) =>
      (await cluster.read(namespace, name)).status?.conditions?.[0]?.message
    expect(await messageOf('shop', 'same')).toContain('shop/creates')
    expect(await messageOf('tenant-a', 'elsewhere')).toContain('tenant=a')
    expect(await isDenied({ route: 'create' })).toBe(true)
    expect(await isDenied({ tenant: 'a' })).toBe(true)
    expect(await verdictsOf({ tenant: 'b' })).toEqual(['OK', 'OK'])
    let events: readonly string[] = []
    const areComplete = async () => (events = await cluster.events('shop')).length === 3
    await waitFor('the events', areComplete).catch((error: unknown) => {
      throw new Error(`the events are ${events.join(', ')}`, { cause: error })
    })
    expect(events).toEqual([
      'creates Normal Accepted',
      'creates Normal Programmed',
      'same Warning Conflicted',
    ])
  },
  TEST_MS_MAX,
)

test(
  'a policy in mode Audit denies nothing, and its status reports what it would deny',
  async () => {
    const match = [{ key: 'tenant', value: 'a' }, { key: 'audited' }]
    const spec = { match, ...perYear('audited', 0) }
    const read = () => cluster.read('tenant-a', 'audited')
    await cluster.apply('tenant-a', 'audited', { ...spec, mode: 'Audit' })
    await waitForStatus('tenant-a', 'audited', 'Accepted, Programmed, 2/2')
    expect((await read()).status?.audit?.wouldDeny).toBe(0)
    expect(await verdictsOf({ tenant: 'a', audited: 'x' })).toEqual(['OK', 'OK'])
    await waitFor('the audit', async () => ((await read()).status?.audit?.wouldDeny ?? 0) > 0)
    await cluster.apply('tenant-a', 'audited', { ...spec, mode: 'Enforce' })
    await waitForStatus('tenant-a', 'audited', 'Accepted, Programmed, 2/2')
    expect((await read()).status).not.toHaveProperty('audit')
    expect(await isDenied({ tenant: 'a', audited: 'x' })).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'a change is effective on both limiters, and then the controller writes nothing',
  async () => {
    await cluster.apply('shop', 'creates', { ...creates, ...perYear('creates', 1000) })
    await waitForStatus('shop', 'creates', 'Accepted, Programmed, 2/2')
    expect(await verdictsOf({ route: 'create' })).toEqual(['OK', 'OK'])
    await cluster.apply('shop', 'creates', creates)
    await waitFor('the former limit', () => isDenied({ route: 'create' }))
    await waitForStatus('shop', 'creates', 'Accepted, Programmed, 2/2')
    await waitFor('the events', async () => {
      const writes = await writesOf(controller)
      await sleep(500)
      return (await writesOf(controller)) === writes
    })
    const writes = await writesOf(controller)
    await sleep(REST_MS)
    expect(await writesOf(controller)).toBe(writes)
  },
  TEST_MS_MAX,
)

test(
  'the status does not count a limiter that stops, and counts its replacement',
  async () => {
    await limiters.pop()?.stop()
    await waitForStatus('shop', 'creates', 'Accepted, Programmed, 1/1')
    await startLimiter('limiter-2')
    expect(await isDenied({ route: 'create' })).toBe(true)
    await waitForStatus('shop', 'creates', 'Accepted, Programmed, 2/2')
  },
  TEST_MS_MAX,
)

test(
  'an edit that is not accepted leaves the limits of the last generation, and its status active',
  async () => {
    const { metadata } = await cluster.read('shop', 'creates')
    const limit = { name: 'creates', algorithm: 'LeakyBucket', requests: 4_294_967_291 }
    await cluster.apply('shop', 'creates', { ...creates, limits: [{ ...limit, window: '366d' }] })
    await waitForStatus('shop', 'creates', 'Invalid, Programmed, 2/2')
    const { status } = await cluster.read('shop', 'creates')
    const [accepted, programmed] = status?.conditions ?? []
    const { generation = 0 } = metadata
    expect(accepted?.message).toMatch(
      new RegExp(`choose a rounder .*; the limits of generation ${generation} stay active$`),
    )
    expect(programmed?.observedGeneration).toBe(generation)
    expect(status?.accepted).toMatchObject({ generation, spec: { ...creates, domain: 'shop' } })
    expect(await isDenied({ route: 'create' })).toBe(true)
  },
  TEST_MS_MAX,
)

test(
  'without permissions in one namespace a new leader serves nothing, and the limits stay',
  async () => {
    const before = await cluster.read('shop', 'creates')
    await cluster.revoke('tenant-a')
    const leader = controller
    controller = await cluster.startController(domains) // on standby: it does not open the port
    await cluster.kill(leader)
    await waitFor('leadership', () => hasLogged(controller, 'acquired leadership'))
    await waitFor('the missing permissions to be logged', () =>
      controller.log.some(({ resource }) => resource === 'ratelimitpolicies in tenant-a'),
    )
    expect(await isServing()).toBe(false)
    expect(await isDenied({ route: 'create' })).toBe(true)
    expect(await isDenied({ tenant: 'a' })).toBe(true)

    await cluster.grant('tenant-a')
    await waitFor('the port for limiters', isServing, RETRY_MS_MAX)
    await cluster.apply('shop', 'next', { match: [{ key: 'next' }], ...perYear('next', 0) })
    await waitFor('the next policy', () => isDenied({ next: 'x' }))
    await waitForStatus('shop', 'next', 'Accepted, Programmed, 2/2')
    expect(await isDenied({ route: 'create' })).toBe(true)
    expect(await cluster.read('shop', 'creates')).toEqual(before)
  },
  TEST_MS_MAX,
)

test(
  'the deletion of a policy removes its limit only',
  async () => {
    await cluster.remove('shop', 'creates')
    // The younger policy with the same match takes its place.
    await waitForStatus('shop', 'same', 'Accepted, Programmed, 2/2')
    expect(await verdictsOf({ route: 'create' })).toEqual(['OK', 'OK'])
    expect(await isDenied({ next: 'x' })).toBe(true)
  },
  TEST_MS_MAX,
)
