// Faults of the xDS server: each is one sentence in the log and one count in a metric, the last
// good rules stay active, and the next good version is loaded.
import { createServer as createHttpServer } from 'node:http'
import * as grpc from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import {
  callSteadily,
  failureOf,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
} from '../../kit/ratelimit/xds-limiter.ts'
import { listenOn } from '../../kit/ratelimit/xds-network.ts'
import { createXdsTls } from '../../kit/ratelimit/xds-tls.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const SEVEN = 'shop.k: unit=HOUR requests_per_unit=7,'
const NINE = 'shop.k: unit=HOUR requests_per_unit=9,'

const xds = setUpXds()
const { start, cleanups } = xds

/** A gRPC server at `port` without services. */
async function serveOtherGrpc(port: number): Promise<() => void> {
  const other = new grpc.Server()
  const credentials = grpc.ServerCredentials.createInsecure()
  await new Promise<void>((resolve, reject) => {
    other.bindAsync(`127.0.0.1:${port}`, credentials, (error) => {
      if (error === null) resolve()
      else reject(error)
    })
  })
  return () => {
    other.forceShutdown()
  }
}

/** The server with TLS, on its port. */
async function serveTls(): Promise<() => void> {
  const tls = createXdsTls()
  cleanups.push(tls.remove)
  const server = await xds.restartServer({ credentials: tls.serverCredentials() })
  return () => {
    server.close()
  }
}

describe('a server that', () => {
  test(
    'is unavailable is retried',
    async () => {
      xds.server.close()
      const limiter = await start({ FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' })
      expect(await failureOf(limiter, 'connect')).toMatch(
        /^cannot connect to the xDS server 127.*ECONNREFUSED.*: check CONFIG_GRPC_XDS_SERVER_URL, /,
      )
      const server = await xds.restartServer()
      server.publish({ version: 'v1', configs: [shopConfig()] })
      await waitFor('rules', async () => (await rlconfig(limiter)).startsWith('shop.steady'))
    },
    TEST_MS_MAX,
  )

  test.each([
    {
      protocol: 'HTTP/1',
      reason: 'connect',
      sentence: /(?<!ECONNREFUSED.*): check CONFIG_GRPC_XDS_SERVER_URL, /,
      serveOther: async (port: number) => (await listenOn(port, createHttpServer())).close,
    },
    {
      protocol: 'TLS, although the client does not,',
      reason: 'connect',
      sentence: /(?<!ECONNREFUSED.*): check .*, CONFIG_GRPC_XDS_SERVER_USE_TLS$/,
      serveOther: serveTls,
    },
    {
      protocol: 'gRPC, but serves no aggregated discovery,',
      reason: 'protocol',
      sentence: /^the server does not serve aggregated .*: check CONFIG_GRPC_XDS_SERVER_URL$/,
      serveOther: serveOtherGrpc,
    },
  ])(
    'uses $protocol is a failure; the last good rules stay active',
    async ({ reason, sentence, serveOther }) => {
      xds.server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const limiter = await start()
      const caller = callSteadily(limiter)
      const { port } = xds.server
      xds.server.close()
      const stopOther = await serveOther(port)
      cleanups.push(stopOther)
      await failureOf(limiter, reason, sentence)
      expect(await rlconfig(limiter)).toContain(SEVEN)
      stopOther()
      const server = await xds.restartServer()
      server.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9))] })
      await waitFor('v2', async () => (await rlconfig(limiter)).includes(NINE))
      expect(await metricsOf(limiter)).toContain('curtail_xds_connected 1\n')
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )

  test(
    'sends a message that is too large, or malformed',
    async () => {
      const { server } = xds
      server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const limiter = await start({ XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '2000' })
      const caller = callSteadily(limiter)
      const many = Array.from({ length: 200 }, (_, n) => perHour(`k${String(n)}`, 1))
      server.publish({ version: 'v2', configs: [shopConfig(...many)] })
      expect(await failureOf(limiter, 'message_size')).toMatch(
        /^a version is too large .*: increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES$/,
      )
      expect(await rlconfig(limiter)).toContain(SEVEN)
      server.publish({ version: 'v3', configs: [shopConfig(perHour('k', 9))] })
      await waitFor('v3', async () => (await rlconfig(limiter)).includes(NINE))
      server.sendBytes(Buffer.from([255, 255]))
      expect(await failureOf(limiter, 'protocol')).toContain('not a valid DiscoveryResponse')
      expect(await rlconfig(limiter)).toContain(NINE)
      await waitFor('a new stream', () => server.streams() === 1)
      await server.requestFor(server.publish({ version: 'v4', configs: [shopConfig()] }))
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})
