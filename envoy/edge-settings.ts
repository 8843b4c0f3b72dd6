// The edge's settings: names, defaults and bounds. Validates them; renders nothing.

/** The endpoint of a service; its host name may resolve to several addresses. */
export interface Endpoint {
  /** DNS name, or IP address. */
  readonly host: string
  readonly port: number
}

/** The values that envoy.yaml is rendered with. The chart uses the same names. */
export interface EdgeSettings {
  /** Public origin of short URLs, such as `https://cur.tl`; empty: problem types are bare paths. */
  readonly baseUrl: string
  /** Address of the listeners; `::` is IPv6 and IPv4. @default `::` */
  readonly listenAddress: string
  /** Whether `::` accepts IPv4 too; requires `::`. @default true if `listenAddress` is `::` */
  readonly dualStack: boolean
  /** Port of plain HTTP/1.1 and HTTP/2. @default 8080 */
  readonly httpPort: number
  /** Whether the edge serves HTTPS too. @default false */
  readonly tls: boolean
  /** Port of HTTPS. @default 8443 */
  readonly httpsPort: number
  /** The file that `renderCertificate` renders. @default /etc/curtail/edge/certificate.yaml */
  readonly certificatePath: string
  /** Folder of tls.crt and tls.key; watched. @default /etc/curtail/edge-certificate */
  readonly certificateFolder: string
  /** Port of /stats/prometheus and /ready. @default 9090 */
  readonly metricsPort: number
  /** Port of Envoy's admin interface on loopback; 0: any. @default 9901 */
  readonly adminPort: number
  /** Number of proxies before the edge whose X-Forwarded-For is trusted. @default 0 */
  readonly trustedHops: number
  /** Whether each connection starts with a PROXY protocol header, v1 or v2. @default false */
  readonly proxyProtocol: boolean
  /** The pods that redirect. */
  readonly redirectEndpoints: readonly Endpoint[]
  /** The pods that create links and serve pages. */
  readonly createEndpoints: readonly Endpoint[]
  /** The limiter's gRPC. */
  readonly limiterEndpoints: readonly Endpoint[]
  /** Whether requests are rejected (503) while the limiter is unavailable. @default false */
  readonly failClosed: boolean
  /** File of the access log; empty: no access log. @default /dev/stdout */
  readonly accessLogPath: string
  /** Maximum client connections. @default 20000 */
  readonly connectionsMax: number
  /** Maximum heap: near it Envoy closes idle connections and rejects requests. @default 400 MiB */
  readonly heapBytesMax: number
  /** Time in which a request's headers must arrive, such as `10s`. @default 10s */
  readonly requestHeadersTimeout: string
  /** Time in which a whole request must arrive. @default 20s */
  readonly requestTimeout: string
  /** Time after which an idle connection is closed. @default 300s */
  readonly idleTimeout: string
  /** Maximum requests of one client per second, of any kind. @default 2000 */
  readonly ceilingPerSecond: number
  /** While the limiter is unavailable: burst of creates of one client. @default 20 */
  readonly createBurst: number
  /** While the limiter is unavailable: creates of one client per second. @default 2 */
  readonly createPerSecond: number
  /** While the limiter is unavailable: burst of creates of all clients. @default 1000 */
  readonly createTotalBurst: number
  /** While the limiter is unavailable: creates of all clients per second. @default 400 */
  readonly createTotalPerSecond: number
  /** While the limiter is unavailable: burst of reports of abuse of one client. @default 10 */
  readonly reportBurst: number
  /** While the limiter is unavailable: reports of one client per hour. @default 12 */
  readonly reportPerHour: number
  /** While the limiter is unavailable: burst of redirects of one client. @default 500 */
  readonly redirectBurst: number
  /** While the limiter is unavailable: redirects of one client per second. @default 200 */
  readonly redirectPerSecond: number
  /** Redirects of one client that Envoy admits without a call: burst; 0: none. @default 0 */
  readonly allowanceBurst: number
  /** The same: redirects per minute. @default 12 */
  readonly allowancePerMinute: number
  /** `X-RateLimit-Limit` within the allowance: the burst of the limiter's rule. @default 500 */
  readonly allowanceLimit: number
  /** `X-RateLimit-Remaining` within it: what the limiter admits in 1 s at least. @default 200 */
  readonly allowanceRemaining: number
  /** Host of the OpenTelemetry collector (OTLP over gRPC); empty: no tracing. @default empty */
  readonly tracingHost: string
  /** Port of the collector. @default 4317 */
  readonly tracingPort: number
  /** Traced requests, in percent. @default 1 */
  readonly tracingSamplePercent: number
}

/** Settings that have no default. */
type Required =
  'baseUrl' | 'dualStack' | 'redirectEndpoints' | 'createEndpoints' | 'limiterEndpoints'

/** The settings that a caller must and may pass. */
export type GivenEdgeSettings = Partial<EdgeSettings> &
  Pick<EdgeSettings, Exclude<Required, 'dualStack'>>

/** Defaults of all settings that have one. */
export const edgeDefaults: Omit<EdgeSettings, Required> = {
  listenAddress: '::',
  httpPort: 8080,
  tls: false,
  httpsPort: 8443,
  certificatePath: '/etc/curtail/edge/certificate.yaml',
  certificateFolder: '/etc/curtail/edge-certificate',
  metricsPort: 9090,
  adminPort: 9901,
  trustedHops: 0,
  proxyProtocol: false,
  failClosed: false,
  accessLogPath: '/dev/stdout',
  connectionsMax: 20_000,
  heapBytesMax: 400 * 1024 * 1024,
  requestHeadersTimeout: '10s',
  requestTimeout: '20s',
  idleTimeout: '300s',
  ceilingPerSecond: 2000,
  createBurst: 20,
  createPerSecond: 2,
  createTotalBurst: 1000,
  createTotalPerSecond: 400,
  reportBurst: 10,
  reportPerHour: 12,
  redirectBurst: 500,
  redirectPerSecond: 200,
  allowanceBurst: 0,
  allowancePerMinute: 12,
  allowanceLimit: 500,
  allowanceRemaining: 200,
  tracingHost: '',
  tracingPort: 4317,
  tracingSamplePercent: 1,
}

/** A check of a value, and the description of allowed values for the error message. */
interface Rule {
  readonly allows: (value: unknown) => boolean
  readonly allowed: string
}

const matching = (pattern: RegExp, allowed: string): Rule => ({
  allows: (value) => typeof value === 'string' && pattern.test(value),
  allowed,
})
const integer = (min: number, max: number): Rule => ({
  allows: (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
  allowed: `an integer from ${min} to ${max}`,
})
const flag: Rule = { allows: (value) => typeof value === 'boolean', allowed: 'true or false' }
const hostShape = /^[0-9A-Za-z:._-]{1,253}$/
const duration = matching(/^(?:[1-9]\d{0,4}|0\.\d{1,3})s$/, 'seconds such as 10s or 0.5s')
const path = matching(/^\/[0-9A-Za-z/._-]{1,1000}$/, 'an absolute path of letters, digits and /._-')
const port = integer(1, 65_535)
const perClient = integer(1, 1_000_000)
const endpoints: Rule = {
  allows: (value) =>
    Array.isArray(value) && value.length > 0 && value.length <= 100 && value.every(isEndpoint),
  allowed: 'a list of 1 to 100 endpoints, each with a host and a port from 1 to 65535',
}

function isEndpoint(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { host, port: at } = value as Partial<Endpoint>
  return typeof host === 'string' && hostShape.test(host) && port.allows(at)
}

const rules: { readonly [name in keyof EdgeSettings]: Rule } = {
  baseUrl: matching(
    /^(?:https?:\/\/[0-9A-Za-z.:[\]-]{1,253})?$/,
    'an origin such as https://cur.tl',
  ),
  dualStack: flag,
  listenAddress: matching(/^[0-9A-Fa-f:.]{2,45}$/, 'an IP address'),
  httpPort: port,
  tls: flag,
  httpsPort: port,
  certificatePath: path,
  certificateFolder: path,
  metricsPort: port,
  adminPort: integer(0, 65_535),
  trustedHops: integer(0, 10),
  proxyProtocol: flag,
  redirectEndpoints: endpoints,
  createEndpoints: endpoints,
  limiterEndpoints: endpoints,
  failClosed: flag,
  accessLogPath: matching(/^(?:\/[0-9A-Za-z/._-]{1,1000})?$/, 'an absolute path, or empty'),
  connectionsMax: integer(100, 1_000_000),
  heapBytesMax: integer(64 * 1024 * 1024, 64 * 1024 ** 3),
  requestHeadersTimeout: duration,
  requestTimeout: duration,
  idleTimeout: duration,
  ceilingPerSecond: perClient,
  createBurst: perClient,
  createPerSecond: perClient,
  createTotalBurst: perClient,
  createTotalPerSecond: perClient,
  reportBurst: perClient,
  reportPerHour: perClient,
  redirectBurst: perClient,
  redirectPerSecond: perClient,
  allowanceBurst: integer(0, 1_000_000),
  allowancePerMinute: perClient,
  allowanceLimit: perClient,
  allowanceRemaining: perClient,
  tracingHost: matching(/^[0-9A-Za-z:._-]{0,253}$/, 'a host, or empty'),
  tracingPort: port,
  tracingSamplePercent: {
    allows: (value) => typeof value === 'number' && value >= 0 && value <= 100,
    allowed: 'a number from 0 to 100',
  },
}

/** Returns all settings, with defaults. Throws an error that lists every invalid setting. */
export function completeEdgeSettings(given: GivenEdgeSettings): EdgeSettings {
  const dualStack = (given.listenAddress ?? edgeDefaults.listenAddress) === '::'
  const settings: EdgeSettings = { ...edgeDefaults, dualStack, ...given }
  const faults = Object.entries(settings).flatMap(([name, value]) => {
    const rule = Object.hasOwn(rules, name) ? rules[name as keyof EdgeSettings] : undefined
    if (rule === undefined) return [`the edge has no setting ${name}`]
    return rule.allows(value) ? [] : [`${name} must be ${rule.allowed}: it is ${show(value)}`]
  })
  const missing = Object.keys(rules).filter((name) => !Object.hasOwn(settings, name))
  if (settings.dualStack && !dualStack) faults.push('dualStack requires listenAddress ::')
  faults.push(...missing.map((name) => `${name} is required`))
  if (faults.length === 0) return settings
  throw new Error(`Cannot configure the edge: ${faults.join('; ')}`)
}

function show(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value)
}
