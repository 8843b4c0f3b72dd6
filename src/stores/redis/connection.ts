// A connection to Redis: standalone, behind Sentinel or Cluster. Reconnects within half a second of
// Redis's recovery; until then commands fail immediately. Queues nothing and retries nothing.
import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { configureSentinelConnections } from './workaround-sentinel-connections.ts'
import type { HostPort, RedisTarget } from './target.ts'

/** Connection options. */
export interface RedisConnectionOptions {
  readonly target: RedisTarget
  readonly auth?: RedisAuth | undefined
  /** Credentials for the sentinels. */
  readonly sentinelAuth?: RedisAuth | undefined
  readonly tls?: RedisTls | undefined
  readonly database: number
  /** The timeout of connecting and of each command. */
  readonly timeoutMs: number
}

/** Credentials. */
export interface RedisAuth {
  /** Absent: the default user. */
  readonly username?: string | undefined
  readonly password: string
}

/** TLS certificates and key in PEM. */
export interface RedisTls {
  /** The trusted CAs; absent: those that Node.js trusts. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Whether the host name is verified against the certificate. */
  readonly isHostChecked: boolean
}

/** The observer of a connection. */
export interface RedisWatch {
  /** Called once when the connection fails or is lost. */
  readonly onDown: (error: Error) => void
  /** Called when the connection is established, also for the first time. */
  readonly onUp: () => void
}

/** An open connection. */
export interface RedisConnection {
  readonly isCluster: boolean
  readonly timeoutMs: number
  /** Whether a command can be sent now. */
  isUp(): boolean
  /** `args`: number of keys, keys, other arguments. Rejects with the driver's error. */
  evalsha(sha: string, args: readonly (string | Buffer)[]): Promise<unknown>
  eval(script: string, args: readonly (string | Buffer)[]): Promise<unknown>
  ping(): Promise<unknown>
  /** The value as a string with one character per byte. */
  get(key: string): Promise<string | null>
  /** As `get`, for several keys; on a Cluster all must be of one slot. */
  mget(keys: readonly string[]): Promise<readonly (string | null)[]>
  /** Sets a value for `ms` unless the key exists; resolves to whether it was set. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** On a Cluster all keys must be of one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /** Closes immediately. */
  close(): void
}

const RETRY_MS_MAX = 250
const FAILOVER_RETRY_MS = 50
const REDIRECTIONS_MAX = 3
const SLOTS_REFRESH_MS = 5000
const KEEP_ALIVE_MS = 10_000
const CLOSE_MS_MAX = 200

configureSentinelConnections(CLOSE_MS_MAX)

/** Starts to connect; does not wait, and does not throw if Redis is unreachable. */
export function connectRedis(options: RedisConnectionOptions, watch: RedisWatch): RedisConnection {
  const client = createClient(options)
  let isDown = false
  let isClosed = false
  client.on('error', (error: Error) => {
    if (isDown) return
    isDown = true
    watch.onDown(error)
  })
  client.on('close', () => {
    if (isDown) return
    isDown = true
    watch.onDown(new Error('the connection was closed'))
  })
  client.on('ready', () => {
    isDown = false
    watch.onUp()
  })
  // Behind Sentinel the driver stops reconnecting if a failover occurs during the master lookup.
  let reconnectTimer: NodeJS.Timeout | undefined
  client.on('end', () => {
    if (isClosed) return
    reconnectTimer = setTimeout(() => {
      client.connect().catch(() => undefined) // reported by the event
    }, retryDelayMs(1))
  })
  return {
    isCluster: options.target.kind === 'cluster',
    timeoutMs: options.timeoutMs,
    isUp: () => client.status === 'ready' && !isClosed,
    evalsha: (sha, [keys = '0', ...rest]) => client.evalsha(sha, String(keys), ...rest),
    eval: (script, [keys = '0', ...rest]) => client.eval(script, String(keys), ...rest),
    ping: () => client.ping(),
    get: (key) => client.getBuffer(key).then(bytesOf),
    mget: async (keys) => (await client.mgetBuffer([...keys])).map(bytesOf),
    async putIfAbsent({ key, value, ms }) {
      return (await client.set(key, value, 'PX', ms, 'NX')) === 'OK'
    },
    del: (keys) => client.del([...keys]),
    close() {
      isClosed = true
      isDown = true // so that the close is not reported
      clearTimeout(reconnectTimer)
      client.disconnect()
    },
  }
}

/** The first retries have almost no delay, later ones at most RETRY_MS_MAX. */
function retryDelayMs(attempt: number): number {
  const maxMs = Math.min(RETRY_MS_MAX, 10 * 2 ** Math.min(attempt, 10))
  return Math.round(maxMs * (0.5 + Math.random() / 2))
}

function commonOptions(options: RedisConnectionOptions) {
  const { auth, tls, timeoutMs } = options
  return {
    ...(auth?.username === undefined ? {} : { username: auth.username }),
    ...(auth === undefined ? {} : { password: auth.password }),
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
    protocol: 2,
    connectTimeout: timeoutMs,
    disconnectTimeout: CLOSE_MS_MAX,
    socketTimeout: timeoutMs,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    connectionName: 'curtail',
    disableClientInfo: true,
    enableReadyCheck: true,
    maxLoadingRetryTime: RETRY_MS_MAX,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
    lazyConnect: false,
    // After a failover the connected Redis may have become a replica.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
  } as const satisfies RedisOptions
}

function createClient(options: RedisConnectionOptions): Redis | Cluster {
  const { target } = options
  if (target.kind === 'cluster') return createCluster(target.nodes, options)
  const common = {
    ...commonOptions(options),
    db: options.database,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  }
  if (target.kind === 'sentinel') {
    const { masterName: name, sentinels } = target
    const list = sentinels.map(({ host, port }) => ({ host, port }))
    return new Redis({ ...common, ...sentinelOptions(options), name, sentinels: list })
  }
  if ('path' in target) return new Redis({ ...common, path: target.path })
  return new Redis({ ...common, host: target.host, port: target.port })
}

function sentinelOptions({ sentinelAuth, timeoutMs, tls }: RedisConnectionOptions) {
  return {
    ...(sentinelAuth?.username === undefined ? {} : { sentinelUsername: sentinelAuth.username }),
    ...(sentinelAuth === undefined ? {} : { sentinelPassword: sentinelAuth.password }),
    ...(tls === undefined ? {} : { sentinelTLS: tlsOptions(tls), enableTLSForSentinelMode: true }),
    role: 'master',
    sentinelCommandTimeout: timeoutMs,
    sentinelRetryStrategy: retryDelayMs,
    sentinelReconnectStrategy: retryDelayMs,
    failoverDetector: true,
  } as const satisfies RedisOptions
}

function createCluster(nodes: readonly HostPort[], options: RedisConnectionOptions): Cluster {
  const startNodes = nodes.map(({ host, port }) => ({ host, port }))
  return new Cluster(startNodes, {
    enableOfflineQueue: false,
    enableReadyCheck: true,
    scaleReads: 'master',
    clusterRetryStrategy: retryDelayMs,
    clusterNodeRetryStrategy: retryDelayMs,
    maxRedirections: REDIRECTIONS_MAX,
    retryDelayOnFailover: FAILOVER_RETRY_MS,
    retryDelayOnClusterDown: FAILOVER_RETRY_MS,
    retryDelayOnTryAgain: FAILOVER_RETRY_MS,
    slotsRefreshTimeout: options.timeoutMs,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    redisOptions: commonOptions(options),
  })
}

function tlsOptions({ ca, cert, key, isHostChecked }: RedisTls): ConnectionOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(isHostChecked ? {} : { checkServerIdentity: () => undefined }),
  }
}

/** One character per byte, so that invalid UTF-8 can be compared too. */
function bytesOf(value: Buffer | null): string | null {
  return value === null ? null : value.toString('latin1')
}
