// Rules from an xDS server over mutual TLS: renewed certificates are used for a new connection, and
// unusable ones leave the last good rules active.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { beforeEach, expect, test } from '@jest/globals'
import { createAuthority, type Issued } from '../../kit/ratelimit/grpc-certificates.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import type { AdsServer } from '../../kit/ratelimit/scripted-ads-server.ts'
import {
  callSteadily,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
} from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 60_000
const SERVER_NAME = 'xds.example'

const servers = createAuthority('xDS servers')
const clients = createAuthority('xDS clients')

let folder: string
const xds = setUpXds()
const { cleanups } = xds
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'curtail-xds-tls-'))
  cleanups.push(() => {
    rmSync(folder, { recursive: true })
  })
})

const fileOf = (name: string) => join(folder, name)

function writeClient({ cert, key }: Issued): void {
  writeFileSync(fileOf('tls.crt'), cert)
  writeFileSync(fileOf('tls.key'), key)
}

async function serve(issued: Issued): Promise<AdsServer> {
  const pair = { private_key: Buffer.from(issued.key), cert_chain: Buffer.from(issued.cert) }
  const ca = Buffer.from(clients.cert)
  const credentials = grpc.ServerCredentials.createSsl(ca, [pair], true)
  const server = await xds.restartServer({ credentials })
  server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
  return server
}

async function start(more: Readonly<Record<string, string>> = {}): Promise<Limiter> {
  writeFileSync(fileOf('ca.crt'), servers.cert)
  const env = {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: fileOf('tls.crt'),
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: fileOf('tls.key'),
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: fileOf('ca.crt'),
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: SERVER_NAME,
    ...more,
  }
  return xds.start(env)
}

const sentenceWith = (limiter: Limiter, text: string) =>
  waitFor(`a log line with ${text}`, () =>
    limiter.log.some(({ msg }) => String(msg).includes(text)),
  )

test(
  'a renewed client certificate is used for a new connection, without a failure',
  async () => {
    writeClient(clients.issue(['limiter']))
    const server = await serve(servers.issue([SERVER_NAME]))
    const limiter = await start()
    const caller = callSteadily(limiter)
    for (const stream of [2, 3]) {
      writeClient(clients.issue(['limiter']))
      await waitFor('the stream', () => server.requests.some((each) => each.stream === stream))
    }
    const serials = new Set(server.requests.map(({ certificate }) => certificate))
    expect(serials.size).toBe(3)
    const nonce = server.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9))] })
    expect(await server.requestFor(nonce)).toMatchObject({ versionInfo: 'v2', stream: 3 })
    expect((await caller.stop()).wrong).toEqual([])
    expect(await metricsOf(limiter)).toContain('failures_total{reason="connect"} 0\n')
  },
  TEST_MS_MAX,
)

test(
  'unusable files leave the connection as it is; a new connection uses the last valid ones',
  async () => {
    writeClient(clients.issue(['limiter']))
    const server = await serve(servers.issue([SERVER_NAME]))
    const limiter = await start()
    writeFileSync(fileOf('tls.key'), clients.issue(['other']).key)
    await sentenceWith(limiter, 'cannot use the TLS files (')
    expect(await metricsOf(limiter)).toContain('failures_total{reason="tls_files"} 1\n')
    const nonce = server.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9))] })
    expect(await server.requestFor(nonce)).toMatchObject({ versionInfo: 'v2', stream: 1 })
    server.endStreams(grpc.status.UNAVAILABLE)
    await sentenceWith(limiter, '_TLS_CACERT; connecting with the last valid ones')
    await waitFor('the second stream', () => server.streams() === 1)
    const later = server.publish({ version: 'v3', configs: [shopConfig(perHour('k', 3))] })
    expect(await server.requestFor(later)).toMatchObject({ versionInfo: 'v3', stream: 2 })
    expect(await metricsOf(limiter)).toContain('failures_total{reason="tls_files"} 2\n')
    writeClient(clients.issue(['limiter']))
    await waitFor('the third stream', () => server.requests.some(({ stream }) => stream === 3))
  },
  TEST_MS_MAX,
)

test(
  'a server certificate of another CA is rejected until the CA file has it',
  async () => {
    writeClient(clients.issue(['limiter']))
    await serve(servers.issue([SERVER_NAME]))
    const limiter = await start()
    const caller = callSteadily(limiter)
    const renewed = createAuthority('renewed CA')
    const next = await serve(renewed.issue([SERVER_NAME]))
    next.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9))] })
    await sentenceWith(limiter, 'CONFIG_GRPC_XDS_SERVER_TLS_*')
    await waitFor('a rejection', () => limiter.log.some(({ msg }) => /certif/i.test(String(msg))))
    expect(await rlconfig(limiter)).toContain('shop.k: unit=HOUR requests_per_unit=7,')
    writeFileSync(fileOf('ca.crt'), renewed.cert)
    await waitFor('v2', async () => (await rlconfig(limiter)).includes('requests_per_unit=9,'))
    expect((await caller.stop()).wrong).toEqual([])
  },
  TEST_MS_MAX,
)

test.each([
  ['expired', () => servers.issue([SERVER_NAME], -0.5), 'certificate has expired'],
  ['of another name', () => servers.issue(['other.example']), 'xds.example'],
])(
  'a server certificate that is %s is rejected',
  async (_, issue, sentence) => {
    writeClient(clients.issue(['limiter']))
    const server = await serve(issue())
    const limiter = await start({ FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' })
    await sentenceWith(limiter, sentence)
    expect(server.requests).toEqual([])
  },
  TEST_MS_MAX,
)

test(
  'a client that uses no TLS gets a sentence that names the setting',
  async () => {
    await serve(servers.issue([SERVER_NAME]))
    const env = {
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'false',
    }
    const limiter = await start(env)
    await sentenceWith(limiter, 'CONFIG_GRPC_XDS_SERVER_USE_TLS')
  },
  TEST_MS_MAX,
)
