// The rules of RateLimitPolicies while leaders change: a real API server, controllers with only
// their permissions, limiters and Redis. Each test depends on those before it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { canConnect } from '../../dependencies/can-connect.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { applyCrd, RATE_LIMIT_POLICIES_CRD } from '../../kit/kube/apply-crd.ts'
import {
  type PolicyCluster,
  startPolicyCluster,
  VERSION_SECRET,
} from '../../kit/kube/policy-cluster.ts'
import type { RoleProcess } from '../../kit/processes/role-process.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import { startXdsLimiter } from '../../kit/ratelimit/xds-limiter.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const START_MS_MAX = 40 * 60_000 // includes the build of Kubernetes
/** A leader starts within 15 s. */
const STORED_MS_MAX = 60_000
const TEST_MS_MAX = 180_000
/** The port is retried after at most 30 s. */
const RETRY_MS_MAX = 45_000
/** Five times the 3 s within which a controller exits after SIGTERM. */
const EXIT_MS_MAX = 15_000

interface Secret {
  readonly metadata: { resourceVersion: string; annotations?: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
}

let cluster: PolicyCluster
let redis: RedisServer
let folder: string
let controller: RoleProcess
let occupant: Server | undefined
const limiters: Limiter[] = []

beforeAll(async () => {
  ;[cluster, redis] = await Promise.all([startPolicyCluster(), startRedis()])
  folder = await mkdtemp(join(tmpdir(), 'curtail-version-'))
  await applyCrd(cluster.admin, RATE_LIMIT_POLICIES_CRD)
  await cluster.createNamespace('shop')
  await cluster.grant('shop')
}, START_MS_MAX)

afterAll(async () => {
  occupant?.close()
  await Promise.all(limiters.map((limiter) => limiter.stop()))
  await Promise.all([cluster.stop(), redis.close(), rm(folder, { recursive: true })])
})

const startController = async () => {
  const domains = [{ domain: 'shop', namespaces: ['shop'] }]
  controller = await cluster.startController(domains, VERSION_SECRET.env)
}
const startLimiter = async (env: Readonly<Record<string, string>> = {}) => {
  const deadlines = { LIMIT_DEADLINE_MS: '5000', REDIS_TIMEOUT: '10s' }
  limiters.push(await startXdsLimiter(cluster.adsPort, { ...deadlines, ...env }, redis.port))
}
const denyAll = (key: string) =>
  cluster.apply('shop', key, {
    match: [{ key }],
    limits: [{ name: key, algorithm: 'FixedWindow', requests: 0, window: '1h' }],
  })
const isDenied = async (key: string) => {
  const verdicts = await Promise.all(limiters.map((limiter) => limiter.decide({ [key]: 'x' })))
  return verdicts.every(({ overallCode }) => overallCode === 'OVER_LIMIT')
}
const hasLogged = (msg: string) => controller.log.some((line) => line['msg'] === msg)
const readSecret = async () =>
  (await cluster.admin.call({ method: 'GET', path: VERSION_SECRET.path })) as Secret
const waitForVersion = async (differentFrom?: string) => {
  const version = async () => (await readSecret()).metadata.annotations?.['curtail.dev/version']
  const isStored = async () => ![undefined, differentFrom].includes(await version())
  await waitFor('the stored version', isStored, STORED_MS_MAX)
  return version()
}
const readyz = async () => {
  const url = `http://127.0.0.1:${String(controller.ready['adminPort'])}/readyz`
  const response = await fetch(url, { headers: { connection: 'close' } })
  return (await response.json()) as { dependencies: Readonly<Record<string, string>> }
}

test(
  'a limiter that starts while no controller runs enforces the version that is stored',
  async () => {
    await denyAll('one') // before the leader starts, so that its first version contains it
    await startController()
    await waitForVersion()
    await cluster.kill(controller)
    expect(await canConnect(cluster.adsPort)).toBe(false)
    const file = join(folder, 'version.pb.gz')
    const { data = {} } = await readSecret()
    await writeFile(file, Buffer.from(data['version.pb.gz'] ?? '', 'base64'))
    await startLimiter({ XDS_FALLBACK_VERSION: file })
    await waitFor('the stored limit', () => isDenied('one'))
  },
  TEST_MS_MAX,
)

test(
  'a leader whose port is in use reports it, writes statuses, and serves once the port is free',
  async () => {
    const server = createServer((socket) => socket.destroy())
    occupant = server
    await new Promise<void>((resolve) => server.listen(cluster.adsPort, resolve))
    await startController()
    await waitFor(
      'the port to be reported',
      async () => (await readyz()).dependencies['adsPort'] === 'down',
    )
    await denyAll('two')
    await waitFor('the status', async () =>
      (await cluster.shown('shop', 'two')).startsWith('Accepted'),
    )
    expect(hasLogged('lost leadership')).toBe(false)
    server.close()
    await waitFor('the next limit', () => isDenied('two'), RETRY_MS_MAX)
    expect((await readyz()).dependencies['adsPort']).toBe('up')
    await waitFor(
      'both limiters',
      async () => (await cluster.shown('shop', 'two')) === 'Accepted, Programmed, 1/1',
    )
  },
  TEST_MS_MAX,
)

test(
  'after SIGTERM to the leader, limiters connect to the next one, which stores only changes',
  async () => {
    const version = await waitForVersion()
    const before = await readSecret()
    const leader = controller
    await startController() // on standby
    await startLimiter()
    leader.child.kill('SIGTERM')
    await waitFor('the next leader', () => hasLogged('acquired leadership'))
    expect(await withinDeadline('the exit', leader.exited, EXIT_MS_MAX)).toBe(0)
    await waitFor(
      'both limiters',
      async () => (await cluster.shown('shop', 'two')) === 'Accepted, Programmed, 2/2',
      RETRY_MS_MAX,
    )
    expect(await readSecret()).toEqual(before)
    await denyAll('three')
    await waitFor('the next limit', () => isDenied('three'))
    await waitForVersion(version)
  },
  TEST_MS_MAX,
)
