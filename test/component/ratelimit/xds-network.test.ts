// Networks that deliver a version slowly or incompletely, over plaintext and over mutual TLS: the
// last good rules stay active, and decisions continue.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import {
  callSteadily,
  failureOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
  transports,
} from '../../kit/ratelimit/xds-limiter.ts'
import { startProxy } from '../../kit/ratelimit/xds-network.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const SEVEN = 'shop.k: unit=HOUR requests_per_unit=7,'
const NINE = 'shop.k: unit=HOUR requests_per_unit=9,'
const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => perHour(`k${String(n)}`, 1))

describe.each(transports)('over %s, a network that', (transport) => {
  const xds = setUpXds({ transport })
  const { start, cleanups } = xds

  const startProxyOf = async (forward: (bytes: Buffer, client: Socket) => Promise<void>) => {
    const { port, close } = await startProxy(xds.server.port, forward)
    cleanups.push(close)
    return port
  }

  test(
    'delivers one byte at a time, and stalls in a version, only delays the version',
    async () => {
      const { server } = xds
      server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const stall = Promise.withResolvers<undefined>()
      let bytesUntilStall = Infinity
      const port = await startProxyOf(async (bytes, client) => {
        for (const byte of bytes) {
          client.write(Buffer.of(byte))
          await nextTurn()
          bytesUntilStall -= 1
          if (bytesUntilStall === 0) await stall.promise
        }
      })
      const limiter = await start({}, port)
      const caller = callSteadily(limiter)
      bytesUntilStall = 1000
      const configs = [shopConfig(perHour('k', 9), ...numbered(200))]
      const nonce = server.publish({ version: 'v2', configs })
      await waitFor('the stall', () => bytesUntilStall === 0)
      expect(await rlconfig(limiter)).toContain(SEVEN)
      expect((await limiter.decide({ steady: 'closed' })).overallCode).toBe('OVER_LIMIT')
      expect(server.requests.filter(({ responseNonce }) => responseNonce === nonce)).toEqual([])
      stall.resolve(undefined)
      const accepted = await server.requestFor(nonce)
      expect(accepted).toMatchObject({ versionInfo: 'v2', errorDetail: null, stream: 1 })
      expect(await rlconfig(limiter)).toContain(NINE)
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )

  test(
    'cuts a version in the middle changes no rules; the next stream loads it',
    async () => {
      const { server } = xds
      server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const next = Promise.withResolvers<undefined>()
      let [bytesLeft, cuts] = [Infinity, 0]
      const port = await startProxyOf(async (bytes, client) => {
        if (cuts > 0) await next.promise
        client.write(bytes.subarray(0, bytesLeft))
        bytesLeft -= bytes.length
        if (bytesLeft > 0) return
        client.destroy()
        bytesLeft = Infinity
        cuts += 1
      })
      const limiter = await start({}, port)
      const caller = callSteadily(limiter)
      bytesLeft = 20_000
      server.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9), ...numbered(3000))] })
      const sentence = await failureOf(limiter, 'stream')
      expect(sentence).toContain('the stream of the xDS server failed')
      expect(cuts).toBe(1)
      expect(await rlconfig(limiter)).toContain(SEVEN)
      next.resolve(undefined)
      await waitFor('v2', async () => (await rlconfig(limiter)).includes(NINE))
      const results = () => server.requests.filter(({ responseNonce }) => responseNonce !== '')
      await waitFor('its acceptance', () => results().length >= 2)
      expect(results().map(({ versionInfo, stream }) => [versionInfo, stream])).toEqual([
        ['v1', 1],
        ['v2', 2],
      ])
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})
