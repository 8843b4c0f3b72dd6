// A connection to Redis: alone, behind Sentinel or as a Cluster. Comes back by itself within half
// a second of Redis; until then commands fail at once. Holds back nothing and repeats nothing.
import type { ConnectionOptions } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { mendSentinels } from './mend-sentinel.ts'
import type { HostPort, RedisTarget } from './target.ts'

/** What a connection needs. */
export interface RedisConnectionOptions {
  readonly target: RedisTarget
  readonly auth?: RedisAuth | undefined
  /** What the sentinels ask for. */
  readonly sentinelAuth?: RedisAuth | undefined
  readonly tls?: RedisTls | undefined
  readonly database: number
  /** Bound of connecting and of each command. */
  readonly timeoutMs: number
}

/** Who we are to Redis. */
export interface RedisAuth {
  /** Absent: the default user. */
  readonly username?: string | undefined
  readonly password: string
}

/** Texts in PEM. */
export interface RedisTls {
  /** Whom to trust; absent: the authorities that Node trusts. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Whether the certificate must name the host. */
  readonly isHostChecked: boolean
}

/** What is told of a connection: once that it is lost or cannot be made, once that it is back. */
export interface RedisWatch {
  readonly onDown: (error: Error) => void
  readonly onUp: () => void
}

/** An open connection. */
export interface RedisConnection {
  readonly isCluster: boolean
  readonly timeoutMs: number
  /** Whether a command can be sent now. */
  isUp(): boolean
  /** Arguments after the script: number of keys, keys, others. Rejects with the driver's error. */
  evalsha(sha: string, args: readonly (string | Buffer)[]): Promise<unknown>
  eval(script: string, args: readonly (string | Buffer)[]): Promise<unknown>
  ping(): Promise<unknown>
  /** A value as one character for each byte. */
  get(key: string): Promise<string | null>
  /** The same of several; on a Cluster only for keys of one slot. */
  mget(keys: readonly string[]): Promise<readonly (string | null)[]>
  /** Puts a value for `ms` where there is none; whether it did. */
  putIfAbsent(entry: { key: string; value: string; ms: number }): Promise<boolean>
  /** On a Cluster only for keys of one slot. */
  del(keys: readonly string[]): Promise<unknown>
  /** Closes at once. */
  close(): void
}

const RETRY_MS_MAX = 250
const FAILOVER_RETRY_MS = 50
const REDIRECTIONS_MAX = 3
const SLOTS_REFRESH_MS = 5000
const KEEP_ALIVE_MS = 10_000
const CLOSE_MS_MAX = 200

mendSentinels(CLOSE_MS_MAX)

/** Begins to connect; never waits for it, and never throws for a Redis that is not there. */
export function connectRedis(options: RedisConnectionOptions, watch: RedisWatch): RedisConnection {
  const client = makeClient(options)
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
  // Behind Sentinel the driver ends for good if a failover is told while it asks for the master.
  let again: NodeJS.Timeout | undefined
  client.on('end', () => {
    if (isClosed) return
    again = setTimeout(() => {
      client.connect().catch(() => undefined) // its event has told it
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
      isDown = true // its end is no news
      clearTimeout(again)
      client.disconnect()
    },
  }
}

/** The first attempts follow at once, later ones every quarter of a second or sooner. */
function retryDelayMs(attempt: number): number {
  const mostMs = Math.min(RETRY_MS_MAX, 10 * 2 ** Math.min(attempt, 10))
  return Math.round(mostMs * (0.5 + Math.random() / 2))
}

function optionsOfAll(options: RedisConnectionOptions) {
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
    // After a failover the Redis at the other end may have become a replica.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
  } as const satisfies RedisOptions
}

function makeClient(options: RedisConnectionOptions): Redis | Cluster {
  const { target } = options
  if (target.kind === 'cluster') return makeCluster(target.nodes, options)
  const all = {
    ...optionsOfAll(options),
    db: options.database,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  }
  if (target.kind === 'sentinel') {
    const { masterName: name, sentinels } = target
    const list = sentinels.map(({ host, port }) => ({ host, port }))
    return new Redis({ ...all, ...sentinelOptions(options), name, sentinels: list })
  }
  if ('path' in target) return new Redis({ ...all, path: target.path })
  return new Redis({ ...all, host: target.host, port: target.port })
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

function makeCluster(nodes: readonly HostPort[], options: RedisConnectionOptions): Cluster {
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
    redisOptions: optionsOfAll(options),
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

/** One character for each byte, so that what is no UTF-8 can be compared too. */
function bytesOf(value: Buffer | null): string | null {
  return value === null ? null : value.toString('latin1')
}
