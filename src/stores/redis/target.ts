// Parses REDIS_URL: `host:port`, a path, `redis://` and `rediss://` URLs, and lists of them for
// Sentinel and Cluster. Does not connect.

/** A host and its port. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** The address of a Redis deployment. */
export type RedisTarget =
  | ({ readonly kind: 'single' } & (HostPort | { readonly path: string }))
  | {
      readonly kind: 'sentinel'
      readonly masterName: string
      readonly sentinels: readonly HostPort[]
    }
  | { readonly kind: 'cluster'; readonly nodes: readonly HostPort[] }

/** A target with the other fields of a `redis://` URL. */
export interface ParsedTarget {
  readonly target: RedisTarget
  readonly hasTls: boolean
  /** `user:password` or a password. */
  readonly auth: string | undefined
  readonly database: number
}

/** The deployment types, as in REDIS_TYPE. */
export const redisTypes = ['SINGLE', 'SENTINEL', 'CLUSTER'] as const

/** One of `redisTypes`. */
export type RedisType = (typeof redisTypes)[number]

/** The socket types of a standalone Redis, as in REDIS_SOCKET_TYPE. */
export const socketTypes = ['tcp', 'unix'] as const

/** One of `socketTypes`. */
export type SocketType = (typeof socketTypes)[number]

const DEFAULT_PORT = 6379
const DATABASE_MAX = 65_535

interface Address extends HostPort {
  readonly hasTls: boolean
  readonly auth: string | undefined
  readonly database: number
}

/** Parses a URL for a deployment type; `undefined` if it is malformed. */
export function parseTarget(
  url: string,
  { type, socketType }: { type: RedisType; socketType: SocketType | undefined },
): ParsedTarget | undefined {
  if (type === 'SENTINEL') return parseSentinel(url)
  if (type === 'CLUSTER') return parseCluster(url)
  if (!url.startsWith('/') && socketType === 'unix') return undefined
  if (url.startsWith('/') && socketType !== 'tcp') {
    const target = { kind: 'single' as const, path: url }
    return { target, hasTls: false, auth: undefined, database: 0 }
  }
  const address = parseAddress(url)
  if (address === undefined) return undefined
  const { host, port, ...rest } = address
  return { target: { kind: 'single', host, port }, ...rest }
}

/** The expected form of the URL, for messages. */
export function targetForm(type: RedisType, socketType: SocketType | undefined): string {
  if (type === 'SENTINEL') return 'a master name and sentinels, as in master,host:port,host:port'
  if (type === 'CLUSTER') return 'a list of nodes, as in host:port,host:port'
  const address = 'host:port, or redis://[user:password@]host[:port][/database], or rediss://…'
  if (socketType === 'tcp') return address
  const path = 'the path of a unix socket, starting with /'
  return socketType === 'unix' ? path : `${address}, or ${path}`
}

function parseSentinel(url: string): ParsedTarget | undefined {
  const [masterName = '', ...rest] = url.split(',').map((item) => item.trim())
  const list = parseList(rest)
  if (masterName === '' || /[:/]/.test(masterName) || list === undefined) return undefined
  const { addresses, ...shared } = list
  return { target: { kind: 'sentinel', masterName, sentinels: addresses }, ...shared }
}

function parseCluster(url: string): ParsedTarget | undefined {
  const list = parseList(url.split(',').map((item) => item.trim()))
  if (list?.database !== 0) return undefined
  const { addresses, ...shared } = list
  return { target: { kind: 'cluster', nodes: addresses }, ...shared }
}

/** Parses addresses that differ only in host and port. */
function parseList(urls: readonly string[]) {
  const parsed = urls.map(parseAddress)
  const addresses = parsed.filter((address) => address !== undefined)
  const [first] = addresses
  if (first === undefined || addresses.length < parsed.length) return undefined
  const { hasTls, auth, database } = first
  const isAlike = (other: Address) =>
    other.hasTls === hasTls && other.auth === auth && other.database === database
  if (!addresses.every(isAlike)) return undefined
  return { addresses: addresses.map(({ host, port }) => ({ host, port })), hasTls, auth, database }
}

function parseAddress(input: string): Address | undefined {
  const isUrl = /^rediss?:\/\//.test(input)
  if (!isUrl && !/^(\[[\da-fA-F:.]+\]|[^[\]:/@?#\s]+):\d{1,5}$/.test(input)) return undefined
  const address = isUrl ? input : `redis://${input}`
  if (!URL.canParse(address)) return undefined
  const url = new URL(address)
  const database = Number(url.pathname.slice(1))
  if (url.hostname === '' || url.search !== '' || url.hash !== '') return undefined
  if (!/^\/?\d{0,5}$/.test(url.pathname) || database > DATABASE_MAX) return undefined
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  if (port === 0) return undefined
  const auth = authOf(url)
  if (auth === null) return undefined
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return { host, port, hasTls: url.protocol === 'rediss:', auth, database }
}

/** `null` if it cannot be decoded. */
function authOf({ username, password }: URL): string | undefined | null {
  if (username === '' && password === '') return undefined
  try {
    const secret = decodeURIComponent(password)
    return username === '' ? secret : `${decodeURIComponent(username)}:${secret}`
  } catch {
    return null
  }
}
