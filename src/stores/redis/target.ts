// Where Redis is, read from the text of REDIS_URL: `host:port`, a path, `redis://` and `rediss://`
// addresses, and lists of them for Sentinel and Cluster. Connects to nothing.

/** One address. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Where to find Redis. */
export type RedisTarget =
  | ({ readonly kind: 'single' } & (HostPort | { readonly path: string }))
  | {
      readonly kind: 'sentinel'
      readonly masterName: string
      readonly sentinels: readonly HostPort[]
    }
  | { readonly kind: 'cluster'; readonly nodes: readonly HostPort[] }

/** A target, and what a `redis://` address says beside it. */
export interface ParsedTarget {
  readonly target: RedisTarget
  readonly hasTls: boolean
  /** `user:password` or a password. */
  readonly auth: string | undefined
  readonly database: number
}

/** The kinds of deployment, by the names of REDIS_TYPE. */
export const redisTypes = ['SINGLE', 'SENTINEL', 'CLUSTER'] as const

/** One of `redisTypes`. */
export type RedisType = (typeof redisTypes)[number]

/** How a Redis that stands alone is reached, by the names of REDIS_SOCKET_TYPE. */
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

/** What a text means for a type of deployment, or `undefined`: it is not in its form. */
export function parseTarget(
  text: string,
  { type, socketType }: { type: RedisType; socketType: SocketType | undefined },
): ParsedTarget | undefined {
  if (type === 'SENTINEL') return parseSentinel(text)
  if (type === 'CLUSTER') return parseCluster(text)
  if (!text.startsWith('/') && socketType === 'unix') return undefined
  if (text.startsWith('/') && socketType !== 'tcp') {
    const target = { kind: 'single' as const, path: text }
    return { target, hasTls: false, auth: undefined, database: 0 }
  }
  const address = parseAddress(text)
  if (address === undefined) return undefined
  const { host, port, ...rest } = address
  return { target: { kind: 'single', host, port }, ...rest }
}

/** The form of the text, for a sentence. */
export function targetForm(type: RedisType, socketType: SocketType | undefined): string {
  if (type === 'SENTINEL') return 'a master name and sentinels, as in master,host:port,host:port'
  if (type === 'CLUSTER') return 'a list of nodes, as in host:port,host:port'
  const address = 'host:port, or redis://[user:password@]host[:port][/database], or rediss://…'
  if (socketType === 'tcp') return address
  const path = 'the path of a unix socket, beginning with /'
  return socketType === 'unix' ? path : `${address}, or ${path}`
}

function parseSentinel(text: string): ParsedTarget | undefined {
  const [masterName = '', ...rest] = text.split(',').map((part) => part.trim())
  const list = parseList(rest)
  if (masterName === '' || /[:/]/.test(masterName) || list === undefined) return undefined
  const { addresses, ...shared } = list
  return { target: { kind: 'sentinel', masterName, sentinels: addresses }, ...shared }
}

function parseCluster(text: string): ParsedTarget | undefined {
  const list = parseList(text.split(',').map((part) => part.trim()))
  if (list?.database !== 0) return undefined
  const { addresses, ...shared } = list
  return { target: { kind: 'cluster', nodes: addresses }, ...shared }
}

/** Several addresses that agree in all but host and port. */
function parseList(texts: readonly string[]) {
  const parsed = texts.map(parseAddress)
  const addresses = parsed.filter((address) => address !== undefined)
  const [first] = addresses
  if (first === undefined || addresses.length < parsed.length) return undefined
  const { hasTls, auth, database } = first
  const isAlike = (other: Address) =>
    other.hasTls === hasTls && other.auth === auth && other.database === database
  if (!addresses.every(isAlike)) return undefined
  return { addresses: addresses.map(({ host, port }) => ({ host, port })), hasTls, auth, database }
}

function parseAddress(text: string): Address | undefined {
  const isUrl = /^rediss?:\/\//.test(text)
  if (!isUrl && !/^(\[[\da-fA-F:.]+\]|[^[\]:/@?#\s]+):\d{1,5}$/.test(text)) return undefined
  const address = isUrl ? text : `redis://${text}`
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

/** `null` where it cannot be read. */
function authOf({ username, password }: URL): string | undefined | null {
  if (username === '' && password === '') return undefined
  try {
    const secret = decodeURIComponent(password)
    return username === '' ? secret : `${decodeURIComponent(username)}:${secret}`
  } catch {
    return null
  }
}
