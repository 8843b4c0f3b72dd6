// The pods of the stack: processes of `create`, `redirect` and `ratelimit`, and the Redis servers
// that they use. Each keeps its ports when it restarts.
import { type RoleProcess, startRole } from '../kit/processes/role-process.ts'
import { startRedis } from '../dependencies/redis.ts'
import { limiterEnvironment } from './limiter-environment.ts'
import { logToFile } from './log-files.ts'
import { DIE_WITH_PARENT, startComponent, type Component } from './component.ts'
import { type ServingRole, startServingRole } from './serving-role.ts'

type Environment = Readonly<Record<string, string>>

/** A component that serves `port`. */
interface PodComponent<R> extends Component {
  readonly port: number
  now(): R
}

/** A process of `create` or `redirect`. */
export type ServingPod = PodComponent<ServingRole>

/** A limiter; its port serves gRPC. */
export type LimiterPod = PodComponent<RoleProcess>

/** The ports of a pod of the stack, and the folder of its log. */
interface PodOptions {
  readonly ordinal: number
  readonly folder: string
  readonly port: number
  readonly adminPort: number
}

/** Starts a process of `create` or `redirect`. */
export async function startServingPod(
  role: ServingRole['role'],
  given: PodOptions & { readonly env: Environment },
): Promise<ServingPod> {
  const { ordinal, folder, port, adminPort } = given
  const name = `${role}-${String(ordinal)}`
  const env = { ...given.env, PORT: String(port), ADMIN_PORT: String(adminPort) }
  const onSpawn = logToFile(folder, name)
  const component = await startComponent({
    name,
    addresses: `${urlOf(port)}, admin ${urlOf(adminPort)}`,
    start: () => startServingRole({ role, wrapper: DIE_WITH_PARENT, onSpawn, env }),
  })
  return { ...component, port }
}

/** Starts a limiter; `rulesRoot` contains the folder `config`. */
export async function startLimiterPod(
  given: PodOptions & {
    readonly rulesRoot: string
    readonly redisPort: number
    readonly baseUrl: string
    readonly replicas: number
    /** Additional settings. */
    readonly more: Environment
  },
): Promise<LimiterPod> {
  const { ordinal, folder, port, adminPort, rulesRoot, redisPort } = given
  const name = `ratelimit-${String(ordinal)}`
  const env = {
    ...limiterEnvironment(rulesRoot, redisPort),
    GRPC_PORT: String(port),
    ADMIN_PORT: String(adminPort),
    BASE_URL: given.baseUrl,
    LIMIT_REPLICAS: String(given.replicas),
    ...given.more,
  }
  const onSpawn = logToFile(folder, name)
  const component = await startComponent({
    name,
    addresses: `gRPC 127.0.0.1:${String(port)}, admin ${urlOf(adminPort)}`,
    start: () => startRole({ role: 'ratelimit', wrapper: DIE_WITH_PARENT, onSpawn, env }),
  })
  return { ...component, port }
}

const policies = { cache: 'allkeys-lfu', counters: 'noeviction' } as const

/** Starts a Redis without persistence: it is empty after a restart. */
export async function startRedisPod(
  name: keyof typeof policies,
  given: { readonly folder: string; readonly port: number; readonly megabytes: number },
): Promise<Component & { readonly port: number }> {
  const { folder, port, megabytes } = given
  const args = ['--maxmemory', `${String(megabytes)}mb`, '--maxmemory-policy', policies[name]]
  const onSpawn = logToFile(folder, name)
  const component = await startComponent({
    name,
    addresses: `redis://127.0.0.1:${String(port)}`,
    start: async () => {
      const server = await startRedis(args, { port, wrapper: DIE_WITH_PARENT, onSpawn })
      return { pid: server.pid(), stop: () => server.close() }
    },
  })
  return { ...component, port }
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${String(port)}`
}
