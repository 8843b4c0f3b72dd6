// The complete path of RateLimitPolicies, all real: an API server, two controllers that are
// restarted when they exit, three limiters and Redis.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { APPLY, type KubeApi } from '../../../src/kube/api.ts'
import { hasStatus } from '../../../src/kube/kube-error.ts'
import type { RateLimitPolicy } from '../../../src/kube/rate-limit-policy/rate-limit-policy.ts'
import { API_KEYS_LABEL } from '../../../src/policies/api-keys.ts'
import { canConnect } from '../../dependencies/can-connect.ts'
import { type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { applyCrd, RATE_LIMIT_POLICIES_CRD } from '../kube/apply-crd.ts'
import { type PolicyCluster, startPolicyCluster, VERSION_SECRET } from '../kube/policy-cluster.ts'
import { type ImageProgram, imageVariables, writeImageProgram } from '../processes/image-program.ts'
import type { RoleProcess } from '../processes/role-process.ts'
import { type Limiter, startLimiter } from '../ratelimit/limiter.ts'
import { residentBytes } from '../resident-bytes.ts'
import { waitFor } from '../wait-for.ts'
import type { KeySecret, ObservedState } from './expected-state.ts'
import { CHANGE_GRANTS, NAMESPACES, type PolicyChange } from './policy-changes.ts'

/** How many limiters run. */
export const LIMITERS = 3
/** How many controllers run. */
export const CONTROLLERS = 2
/** The deadline of controllers to start, and to acquire the Lease. */
export const LEADER_MS_MAX = 120_000
const SAMPLE_MS = 500
/** A controller restarts within this time, as by a kubelet. */
const RESTART_MS_MAX = 2000

/** The processes; a limiter is `undefined` while it restarts. */
export class PolicySoak {
  readonly cluster: PolicyCluster
  readonly limiters: (Limiter | undefined)[] = []
  readonly controllers: (RoleProcess | undefined)[] = []
  /** The maximum resident memory of a controller in bytes. */
  controllerBytesMax = 0
  /** How many leaders exited because they could not renew their Lease. */
  lostLeases = 0
  failure: Error | undefined
  private readonly redis: RedisServer
  private readonly folder: string
  private readonly image: ImageProgram
  private readonly sampler: NodeJS.Timeout
  private isStopping = false
  private readonly restarts = new Set<Promise<void>>()

  private constructor(given: {
    readonly cluster: PolicyCluster
    readonly redis: RedisServer
    readonly folder: string
    readonly image: ImageProgram
  }) {
    this.image = given.image
    this.cluster = given.cluster
    this.redis = given.redis
    this.folder = given.folder
    this.sampler = setInterval(() => void this.sample(), SAMPLE_MS)
  }

  /** Starts all processes. */
  static async start(): Promise<PolicySoak> {
    const cluster = await startPolicyCluster()
    const redis = await startRedis()
    const folder = await mkdtemp(join(tmpdir(), 'curtail-policy-soak-'))
    const image = await writeImageProgram(join(folder, 'app'))
    const soak = new PolicySoak({ cluster, redis, folder, image })
    await applyCrd(cluster.admin, RATE_LIMIT_POLICIES_CRD)
    for (const [namespace, hasKeys] of NAMESPACES) {
      await cluster.createNamespace(namespace)
      await cluster.grant(namespace)
      if (hasKeys) await cluster.grantApiKeys(namespace)
    }
    for (let at = 0; at < CONTROLLERS; at++) await soak.startController(at)
    await soak.waitForLeader()
    for (let at = 0; at < LIMITERS; at++) soak.limiters[at] = await soak.startLimiter(at)
    return soak
  }

  get admin(): KubeApi {
    return this.cluster.admin
  }

  /** Waits until a controller serves the rules. */
  waitForLeader(): Promise<void> {
    return waitFor('a leader', () => canConnect(this.cluster.adsPort), LEADER_MS_MAX)
  }

  /** The controller that serves the rules. */
  leader(): RoleProcess {
    const found = this.controllers.find(
      (controller) => controller && hasLogged(controller, 'acquired leadership'),
    )
    if (found === undefined) throw new Error('no controller leads')
    return found
  }

  /** Sends a signal to a controller, which is then restarted. */
  async signalController(at: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const controller = this.controllers[at]
    if (controller === undefined) return // it restarts
    controller.child.kill(signal)
    await controller.exited
  }

  /** Stops a limiter, kills it before if `isKilled`, and starts another one with its copy. */
  async restartLimiter(at: number, isKilled: boolean): Promise<void> {
    const limiter = this.limiters[at]
    if (limiter === undefined) throw new Error(`limiter ${at + 1} restarts`)
    this.limiters[at] = undefined
    if (isKilled) limiter.child.kill('SIGKILL')
    await limiter.stop()
    this.limiters[at] = await this.startLimiter(at)
  }

  /** Kills the API server, and restarts it once `work` has completed. */
  async withoutApi(work: () => Promise<unknown>): Promise<void> {
    await this.cluster.apiserver.kill()
    try {
      await work()
    } finally {
      await this.cluster.apiserver.restart()
    }
  }

  /** Applies a change. Throws KubeError. */
  async apply(change: PolicyChange): Promise<void> {
    const { namespace, name } = change
    try {
      if (change.kind === 'keys') await this.applyKeys(change)
      else if (change.spec) await this.cluster.apply(namespace, name, change.spec)
      else await this.cluster.remove(namespace, name)
    } catch (error) {
      if (!hasStatus(error, 404)) throw error // it has been deleted
    }
  }

  /** The policies, the Secrets and the rules of all limiters. Throws while a process restarts. */
  async observe(): Promise<ObservedState> {
    if (this.controllers.includes(undefined)) throw new Error('a controller restarts')
    const list = async (path: string, query: Record<string, string> = {}) =>
      (await this.admin.call({ method: 'GET', path, query, msMax: 60_000 })) as { items: unknown }
    const { items: policies } = await list('/apis/curtail.dev/v1alpha1/ratelimitpolicies')
    const labelSelector = `${API_KEYS_LABEL}=true`
    const { items: secrets } = await list('/api/v1/secrets', { labelSelector })
    const rlconfigs = this.limiters.map(async (limiter, at) => {
      if (limiter === undefined) throw new Error(`limiter ${at + 1} does not run`)
      const headers = { connection: 'close' }
      const signal = AbortSignal.timeout(60_000)
      return (await fetch(`${limiter.debugUrl}/rlconfig`, { headers, signal })).text()
    })
    return {
      policies: policies as RateLimitPolicy[],
      secrets: secrets as KeySecret[],
      rlconfigs: await Promise.all(rlconfigs),
    }
  }

  /** How many writes the controllers have sent, without those of the Lease. */
  async writes(): Promise<number> {
    let sum = 0
    for (const controller of this.controllers) {
      const url = `http://127.0.0.1:${String(controller?.ready['adminPort'])}/metrics`
      const page = await (await fetch(url, { signal: AbortSignal.timeout(60_000) })).text()
      const lines = page.match(/^rest_client_requests_total\{.*method="(PATCH|POST)".*$/gm) ?? []
      for (const line of lines) sum += Number(line.split(' ').at(-1))
    }
    return sum
  }

  async stop(): Promise<void> {
    this.isStopping = true
    clearInterval(this.sampler)
    await Promise.all(this.restarts)
    await Promise.all(this.limiters.map(async (limiter) => limiter?.stop()))
    await Promise.all([this.cluster.stop(), this.redis.close()])
    await rm(this.folder, { recursive: true })
  }

  private async startController(at: number): Promise<void> {
    const env = { ...VERSION_SECRET.env, ...imageVariables }
    const program = this.programOf('controller')
    const controller = await this.cluster.startController(CHANGE_GRANTS, env, program)
    this.controllers[at] = controller
    void controller.exited.then((status) => {
      this.controllers[at] = undefined
      if (this.isStopping) return
      if (hasLogged(controller, 'lost leadership')) this.lostLeases++
      else if (status !== 'SIGKILL' && status !== 0) {
        this.failure ??= new Error(`a controller exited: ${JSON.stringify(controller.log.at(-1))}`)
      }
      const restart = sleep(Math.random() * RESTART_MS_MAX)
        .then(() => (this.isStopping ? undefined : this.startController(at)))
        .catch((error: unknown) => {
          this.failure ??= new Error('a controller does not start', { cause: error })
        })
        .finally(() => this.restarts.delete(restart))
      this.restarts.add(restart)
    })
  }

  private startLimiter(at: number): Promise<Limiter> {
    return startLimiter({
      rules: '',
      redisPort: this.redis.port,
      ...this.programOf('ratelimit'),
      wrapper: ['setpriv', '--pdeathsig', 'KILL'],
      env: {
        ...imageVariables,
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${String(this.cluster.adsPort)}`,
        CONFIG_GRPC_XDS_NODE_ID: `limiter-${at + 1}`,
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '500ms',
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '500ms',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '2s',
        RULES_COPY: join(this.folder, `copy-${at + 1}`),
        LIMIT_DEADLINE_MS: '5000',
        REDIS_TIMEOUT: '10s',
      },
    })
  }

  private programOf(role: string) {
    return { entryFile: this.image.entryFile, nodeOptions: this.image.optionsOf(role) }
  }

  private async applyKeys(change: Extract<PolicyChange, { kind: 'keys' }>): Promise<void> {
    const { namespace, name, tier, data } = change
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`
    if (data === undefined) {
      await this.admin.call({ method: 'DELETE', path })
      return
    }
    const encoded = Object.entries(data).map(
      ([key, value]) => [key, Buffer.from(value).toString('base64')] as const,
    )
    const metadata = { name, labels: { [API_KEYS_LABEL]: 'true', tier } }
    const body = { apiVersion: 'v1', kind: 'Secret', metadata, data: Object.fromEntries(encoded) }
    const query = { ...APPLY.query, fieldManager: 'kubectl' }
    const { contentType } = APPLY
    await this.admin.call({ method: 'PATCH', path, body, query, contentType })
  }

  private async sample(): Promise<void> {
    for (const controller of this.controllers) {
      if (controller === undefined) continue
      const bytes = await residentBytes(controller.pid).catch(() => 0) // it has exited
      this.controllerBytesMax = Math.max(this.controllerBytesMax, bytes)
    }
  }
}

function hasLogged({ log }: RoleProcess, msg: string): boolean {
  return log.some((line) => line['msg'] === msg)
}
