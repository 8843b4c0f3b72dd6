// The real `ratelimit` role with rules from a scripted xDS server, and a caller at a steady rate.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { type Limiter, startLimiter } from './limiter.ts'
import { type AdsServer, type AdsServerOptions, startAdsServer } from './scripted-ads-server.ts'
import type { ConfigMessage, DescriptorMessage } from './xds-messages.ts'
import { createXdsTls, type XdsTls } from './xds-tls.ts'
import { waitFor } from '../wait-for.ts'
import { durationWithoutWaits } from '../watch-pauses.ts'

/** Short intervals, so that the tests do not wait. */
const intervals = {
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '200ms',
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '200ms',
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: '1s',
}

/** The environment of a limiter that uses the server at `port`. */
export function xdsEnvironment(port: number): Record<string, string> {
  return {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${String(port)}`,
    ...intervals,
  }
}

/** Starts a limiter, and waits until it is ready. Redis is unavailable unless a port is given. */
export async function startXdsLimiter(
  port: number,
  env: Readonly<Record<string, string>> = {},
  redisPort?: number,
): Promise<Limiter> {
  const settings = { ...xdsEnvironment(port), ...env }
  if (redisPort === undefined) return startLimiter({ rules: '', redisPort: 1, env: settings })
  const limiter = await startLimiter({ rules: '', redisPort, env: settings })
  // Until it is connected, it counts locally.
  const isConnected = () => limiter.log.some(({ msg }) => msg === 'Redis available')
  await waitFor('Redis to be available', isConnected)
  return limiter
}

/** The transports between a limiter and its xDS server, for `describe.each`. */
export const transports = ['plaintext', 'mutual TLS'] as const

/** Options of the first server of each test, and the transport of all. */
export interface XdsTestOptions extends AdsServerOptions {
  /** @default plaintext */
  readonly transport?: (typeof transports)[number]
}

/** The server of a test, and what is closed after the test. */
export interface XdsTest {
  /** The running server. */
  readonly server: AdsServer
  /** The TLS files of the limiters. Throws with plaintext. */
  readonly tls: XdsTls
  /** Run after the test, the last one first. */
  readonly cleanups: (() => unknown)[]
  /** Starts a limiter that uses the server, or that at `port`, and stops it after the test. */
  readonly start: (env?: Readonly<Record<string, string>>, port?: number) => Promise<Limiter>
  /** Closes the server, and starts another one on the same port. */
  restartServer(options?: AdsServerOptions): Promise<AdsServer>
}

/** Registers the set-up of each test of the file or suite: a server, and the clean-ups. */
export function setUpXds({ transport, ...options }: XdsTestOptions = {}): XdsTest {
  let server: AdsServer | undefined
  let tls: XdsTls | undefined
  const running = (): AdsServer => {
    if (server === undefined) throw new Error('the server runs only during a test')
    return server
  }
  const serve = async (given: AdsServerOptions): Promise<AdsServer> => {
    const credentials = tls && { credentials: tls.serverCredentials() }
    server = await startAdsServer({ ...credentials, ...given })
    return server
  }
  const cleanups: (() => unknown)[] = []
  beforeEach(async () => {
    if (transport === 'mutual TLS') {
      tls = createXdsTls()
      cleanups.push(tls.remove)
    }
    await serve({ port: await freePort(), ...options })
    cleanups.push(() => {
      running().close()
    })
  })
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  })
  return {
    get server() {
      return running()
    },
    get tls() {
      if (tls === undefined) throw new Error('TLS files exist only in a test with mutual TLS')
      return tls
    },
    cleanups,
    async start(env = {}, port = running().port) {
      const limiter = await startXdsLimiter(port, { ...tls?.env, ...env })
      cleanups.push(() => limiter.stop())
      return limiter
    },
    async restartServer(next = {}) {
      const { port } = running()
      running().close()
      return serve({ ...next, port })
    },
  }
}

/** The descriptors whose verdicts `callSteadily` checks by default. */
const steady: readonly DescriptorMessage[] = [
  { key: 'steady', value: 'open', rateLimit: { unlimited: true } },
  { key: 'steady', value: 'closed', rateLimit: { unit: 'SECOND', requestsPerUnit: 0 } },
]

/** A config of the domain `shop` with the steady descriptors and others. */
export function shopConfig(...descriptors: readonly DescriptorMessage[]): ConfigMessage {
  return { name: 'shop', domain: 'shop', descriptors: [...steady, ...descriptors] }
}

/** A descriptor with a limit per hour; /rlconfig shows the limit. */
export function perHour(key: string, requestsPerUnit: number): DescriptorMessage {
  return { key, rateLimit: { unit: 'HOUR', requestsPerUnit } }
}

/** Options of a fetch whose connection closes: the limiter waits for open ones when it stops. */
export const closing = { headers: { connection: 'close' } }

/** The response of /rlconfig. */
export async function rlconfig({ debugUrl }: Limiter): Promise<string> {
  return (await fetch(`${debugUrl}/rlconfig`, closing)).text()
}

/** The response of /metrics. */
export async function metricsOf({ adminUrl }: Limiter): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`, closing)).text()
}

/**
 * Waits until the log has a failure of the connection to the xDS server by this reason, with this
 * sentence, and the metric counts all by this reason. Returns the sentence.
 */
export async function failureOf(limiter: Limiter, reason: string, sentence = /^/): Promise<string> {
  const sentences = () =>
    limiter.log.filter((line) => line['reason'] === reason).map(({ msg }) => String(msg))
  const find = () => sentences().find((each) => sentence.test(each))
  await waitFor(`a failure by ${reason} with ${String(sentence)}`, () => find() !== undefined)
  const count = sentences().length
  const name = 'curtail_xds_connection_failures_total'
  const counted = new RegExp(`^${name}\\{reason="${reason}"\\} (\\d+)$`, 'm')
  const value = Number(counted.exec(await metricsOf(limiter))?.[1])
  if (!(value >= count)) throw new Error(`${name} is ${value}, but the log has ${count} failures`)
  return find() ?? ''
}

/** A caller; `stop` returns its errors and wrong verdicts, and the longest call. */
export interface SteadyCaller {
  stop(): Promise<{ calls: number; wrong: readonly string[]; longestMs: number }>
}

const PAUSE_MS = 5
const WRONG_MAX = 20

/** The verdicts of the steady descriptors by their values. */
export const steadyVerdicts = { open: 'OK', closed: 'OVER_LIMIT' } as const

/**
 * Calls with values of the descriptor `steady`, one call after the other, until it is stopped, and
 * checks the verdict of each.
 */
export function callSteadily(
  limiter: Limiter,
  verdicts: Readonly<Record<string, string>> = steadyVerdicts,
): SteadyCaller {
  const wrong: string[] = []
  let [calls, longestMs, isStopped] = [0, 0, false]
  const callOnce = async (value: string, expected: string) => {
    let code = ''
    // This process is also the xDS server: its own pauses do not count.
    const durationMs = await durationWithoutWaits(limiter.pid, async () => {
      code = await limiter.decide({ steady: value }).then(
        ({ overallCode }) => overallCode,
        (error: unknown) => String(error),
      )
    })
    longestMs = Math.max(longestMs, durationMs)
    calls += 1
    if (code !== expected && wrong.length < WRONG_MAX) wrong.push(`${value}: ${code}`)
  }
  const running = (async () => {
    while (!isStopped) {
      for (const [value, expected] of Object.entries(verdicts)) await callOnce(value, expected)
      await sleep(PAUSE_MS)
    }
  })()
  return {
    async stop() {
      isStopped = true
      await running
      return { calls, wrong, longestMs }
    },
  }
}
