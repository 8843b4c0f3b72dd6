// Faults of the xDS server and of the network: each is one sentence in the log and one count in a
// metric, the last good rules stay active, and the next good version is loaded.
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
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
const forced = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' }

const xds = setUpXds()
const { start, cleanups } = xds

/** Waits for a failure in the log, and returns its sentence. */
async function failureOf(limiter: Limiter, reason: string): Promise<string> {
  const find = () => limiter.log.find((line) => line['reason'] === reason)
  await waitFor(`a failure by ${reason}`, () => find() !== undefined)
  expect(await metricsOf(limiter)).toMatch(
    new RegExp(`curtail_xds_connection_failures_total{reason="${reason}"} [1-9]`),
  )
  return String(find()?.['msg'])
}

/** Listens on a free port of loopback. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

/** A proxy that passes the server's bytes to `forward`. */
function proxyTo(port: number, forward: (bytes: Buffer, client: Socket) => Promise<void>) {
  return listen(
    createServer((client) => {
      const upstream = connect(port, '127.0.0.1')
      client.pipe(upstream)
      let forwarded = Promise.resolve()
      upstream.on('data', (bytes: Buffer) => {
        forwarded = forwarded.then(() => forward(bytes, client))
      })
      for (const socket of [client, upstream]) {
        socket.on('error', () => undefined) // the other end has reset the connection
        socket.on('close', () => {
          client.destroy()
          upstream.destroy()
        })
      }
    }),
  )
}

describe('a server that', () => {
  test(
    'is not there is retried',
    async () => {
      xds.server.close()
      const limiter = await start(forced)
      expect(await failureOf(limiter, 'connect')).toMatch(
        /^cannot connect to the xDS server 127.*ECONNREFUSED.*: check CONFIG_GRPC_XDS_SERVER_URL, /,
      )
      const server = await xds.restartServer()
      server.publish({ version: 'v1', configs: [shopConfig()] })
      await waitFor('rules', async () => (await rlconfig(limiter)).startsWith('shop.steady'))
    },
    TEST_MS_MAX,
  )

  test(
    'uses HTTP/1',
    async () => {
      const limiter = await start(forced, await listen(createHttpServer()))
      expect(await failureOf(limiter, 'connect')).toContain('cannot connect to the xDS server')
    },
    TEST_MS_MAX,
  )

  test(
    'uses no TLS, although the client does',
    async () => {
      const limiter = await start({ ...forced, CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' })
      expect(await failureOf(limiter, 'connect')).toContain('CONFIG_GRPC_XDS_SERVER_USE_TLS')
    },
    TEST_MS_MAX,
  )

  test(
    'does not serve aggregated discovery',
    async () => {
      const other = new grpc.Server()
      const port = await new Promise<number>((resolve) => {
        other.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_, bound) => {
          resolve(bound)
        })
      })
      cleanups.push(() => {
        other.forceShutdown()
      })
      const limiter = await start(forced, port)
      expect(await failureOf(limiter, 'protocol')).toContain('does not serve aggregated discovery')
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
      expect(await rlconfig(limiter)).toContain('shop.k: unit=HOUR requests_per_unit=7,')
      server.publish({ version: 'v3', configs: [shopConfig(perHour('k', 9))] })
      await waitFor('v3', async () => (await rlconfig(limiter)).includes('requests_per_unit=9,'))
      server.sendBytes(Buffer.from([255, 255]))
      expect(await failureOf(limiter, 'protocol')).toContain('not a valid DiscoveryResponse')
      await waitFor('a new stream', () => server.streams() === 1)
      await server.requestFor(server.publish({ version: 'v4', configs: [shopConfig()] }))
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})

describe('a network that', () => {
  test(
    'delivers one byte at a time only delays a version',
    async () => {
      const { server } = xds
      server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const port = await proxyTo(server.port, async (bytes, client) => {
        for (const byte of bytes) {
          client.write(Buffer.from([byte]))
          await new Promise(setImmediate)
        }
      })
      const limiter = await start({}, port)
      expect(await rlconfig(limiter)).toContain('shop.k: unit=HOUR requests_per_unit=7,')
    },
    TEST_MS_MAX,
  )

  test(
    'cuts a version in the middle changes no rules; the next stream loads it',
    async () => {
      const { server } = xds
      server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const config = shopConfig(
        ...Array.from({ length: 3000 }, (_, n) => perHour(`k${String(n)}`, 1)),
      )
      let [bytesLeft, cuts] = [Infinity, 0]
      const port = await proxyTo(server.port, (bytes, client) => {
        client.write(bytes.subarray(0, bytesLeft))
        bytesLeft -= bytes.length
        if (bytesLeft > 0) return Promise.resolve()
        client.destroy()
        bytesLeft = Infinity
        cuts += 1
        return Promise.resolve()
      })
      const limiter = await start({}, port)
      const caller = callSteadily(limiter)
      bytesLeft = 20_000
      server.publish({ version: 'v2', configs: [config] })
      expect(await failureOf(limiter, 'stream')).toContain('the stream of the xDS server failed')
      expect(cuts).toBe(1)
      await waitFor('v2', async () => (await rlconfig(limiter)).includes('shop.k2999:'))
      const results = server.requests.filter(({ responseNonce }) => responseNonce !== '')
      expect(results.map(({ versionInfo, stream }) => [versionInfo, stream])).toEqual([
        ['v1', 1],
        ['v2', 2],
      ])
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})
