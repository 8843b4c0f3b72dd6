// Rules from an xDS server over mutual TLS: renewed certificates are used for a new connection.
// Certificates that the client or the server rejects, and unusable files, are one sentence in the
// log and one count in a metric, and leave the last good rules active.
import { writeFileSync } from 'node:fs'
import * as grpc from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { createAuthority, type Issued } from '../../kit/ratelimit/grpc-certificates.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import type { AdsServer } from '../../kit/ratelimit/scripted-ads-server.ts'
import {
  callSteadily,
  failureOf,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
} from '../../kit/ratelimit/xds-limiter.ts'
import { SERVER_NAME, xdsClients, xdsServers } from '../../kit/ratelimit/xds-tls.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const EXPIRED_DAYS = -0.5

const xds = setUpXds({ transport: 'mutual TLS' })

/** The limit of `k`, which each version of a test sets to its number. */
const limitOf = async (limiter: Limiter) =>
  /shop\.k: unit=HOUR requests_per_unit=(\d+),/.exec(await rlconfig(limiter))?.[1]
const waitForVersion = (n: number, limiter: Limiter) =>
  waitFor(`version ${n}`, async () => (await limitOf(limiter)) === String(n))

function publish(n: number, server = xds.server): string {
  return server.publish({ version: `v${n}`, configs: [shopConfig(perHour('k', n))] })
}

/** Restarts the server with other credentials and a version. */
async function serve(n: number, credentials: grpc.ServerCredentials): Promise<AdsServer> {
  const server = await xds.restartServer({ credentials })
  publish(n, server)
  return server
}

/** A limiter with version 1, and a caller. */
async function start() {
  publish(1)
  const limiter = await xds.start()
  return { limiter, caller: callSteadily(limiter) }
}

test(
  'a renewed client certificate is used for a new connection, without a failure',
  async () => {
    const { server, tls } = xds
    const { limiter, caller } = await start()
    for (const stream of [2, 3]) {
      tls.writeClient(xdsClients.issue(['limiter']))
      await waitFor('the stream', () => server.requests.some((each) => each.stream === stream))
    }
    const serials = new Set(server.requests.map(({ certificate }) => certificate))
    expect(serials.size).toBe(3)
    expect(await server.requestFor(publish(2))).toMatchObject({ versionInfo: 'v2', stream: 3 })
    expect((await caller.stop()).wrong).toEqual([])
    expect(await metricsOf(limiter)).toContain('failures_total{reason="connect"} 0\n')
  },
  TEST_MS_MAX,
)

test(
  'unusable files leave the connection as it is; a new connection uses the last valid ones',
  async () => {
    const { server, tls } = xds
    const { limiter, caller } = await start()
    const streamOf = (n: number) =>
      waitFor(`stream ${n}`, () => server.requests.some(({ stream }) => stream === n))
    tls.writeClient(xdsClients.issue(['limiter']))
    await streamOf(2) // the watch has read the files of the start
    writeFileSync(tls.fileOf('tls.key'), xdsClients.issue(['other']).key)
    await failureOf(limiter, 'tls_files', /^cannot use the TLS files \(/)
    expect(await metricsOf(limiter)).toContain('failures_total{reason="tls_files"} 1\n')
    expect(await server.requestFor(publish(2))).toMatchObject({ versionInfo: 'v2', stream: 2 })
    server.endStreams(grpc.status.UNAVAILABLE)
    await failureOf(limiter, 'tls_files', /_TLS_CACERT; connecting with the last valid ones$/)
    await streamOf(3)
    expect(await server.requestFor(publish(3))).toMatchObject({ versionInfo: 'v3', stream: 3 })
    expect(await metricsOf(limiter)).toContain('failures_total{reason="tls_files"} 2\n')
    tls.writeClient(xdsClients.issue(['limiter']))
    await streamOf(4)
    expect((await caller.stop()).wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test.each([
  [
    'has expired',
    () => xds.tls.serverCredentials(xdsServers.issue([SERVER_NAME], EXPIRED_DAYS)),
    /certificate has expired.*CONFIG_GRPC_XDS_SERVER_TLS_\*/,
  ],
  [
    'has another name',
    () => xds.tls.serverCredentials(xdsServers.issue(['other.example'])),
    /xds\.example.*CONFIG_GRPC_XDS_SERVER_TLS_\*/,
  ],
  [
    'is absent: it uses no TLS',
    () => grpc.ServerCredentials.createInsecure(),
    /(?<!ECONNREFUSED.*)CONFIG_GRPC_XDS_SERVER_USE_TLS/,
  ],
])(
  'a server is rejected if its certificate %s; the last good rules stay active',
  async (_, credentials, sentence) => {
    const { limiter, caller } = await start()
    const bad = await serve(2, credentials())
    await failureOf(limiter, 'connect', sentence)
    expect(await limitOf(limiter)).toBe('1')
    expect(bad.requests).toEqual([])
    await serve(3, xds.tls.serverCredentials())
    await waitForVersion(3, limiter)
    expect((await caller.stop()).wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'a server certificate of another CA is rejected until the CA file has it',
  async () => {
    const { limiter, caller } = await start()
    const renewed = createAuthority('renewed CA')
    const bad = await serve(2, xds.tls.serverCredentials(renewed.issue([SERVER_NAME])))
    const sentence = /unable to verify the first certificate.*CONFIG_GRPC_XDS_SERVER_TLS_\*/
    await failureOf(limiter, 'connect', sentence)
    expect(await limitOf(limiter)).toBe('1')
    expect(bad.requests).toEqual([])
    writeFileSync(xds.tls.fileOf('ca.crt'), renewed.cert)
    await waitForVersion(2, limiter)
    expect((await caller.stop()).wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test.each([
  [
    'has expired',
    (): Issued => xdsClients.issue(['limiter'], EXPIRED_DAYS),
    /the client certificate \(CONFIG_GRPC_XDS_CLIENT_TLS_CERT\) expired at 20/,
  ],
  [
    'is of a CA that the server does not trust',
    (): Issued => createAuthority('other clients').issue(['limiter']),
    /the server may reject the client certificate \(CONFIG_GRPC_XDS_CLIENT_TLS_CERT\)/,
  ],
])(
  'a server rejects a client certificate that %s; the last good rules stay active',
  async (_, issue, sentence) => {
    const { server, tls } = xds
    const { limiter, caller } = await start()
    const streams = () => new Set(server.requests.map(({ stream }) => stream)).size
    tls.writeClient(issue())
    await failureOf(limiter, 'connect', sentence)
    publish(2)
    expect(await limitOf(limiter)).toBe('1')
    expect([server.streams(), streams()]).toEqual([0, 1])
    tls.writeClient(xdsClients.issue(['limiter']))
    await waitForVersion(2, limiter)
    expect((await caller.stop()).wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'a client without a certificate gets a sentence that names the setting',
  async () => {
    const limiter = await xds.start({
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '',
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '',
    })
    const sentence =
      /the server may require a client certificate \(CONFIG_GRPC_XDS_CLIENT_TLS_CERT\)/
    await failureOf(limiter, 'connect', sentence)
    expect(xds.server.requests).toEqual([])
  },
  TEST_MS_MAX,
)
