// Decisions continue, without errors and with the right verdicts, while versions of any size become
// active, flap, or while the xDS server is unavailable; over plaintext and over mutual TLS.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import {
  callSteadily,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
  steadyVerdicts,
  transports,
} from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL, configBytes, responseBytes } from '../../kit/ratelimit/xds-messages.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { durationWithoutWaits } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
/** Time from the arrival of a version until it is active. */
const ACTIVE_MS = 200
const LARGE_ACTIVE_MS = 1000
/** LIMIT_DEADLINE_MS, within which a call completes by design. */
const CALL_MS = 60
const STALLS = 5
const bad = { key: 'bad', rateLimit: { requestsPerUnit: 1 } }
/** No rule denies this value of `steady`, unless a rejected version has become active. */
const banned = { key: 'steady', value: 'rejected', rateLimit: { unit: 'DAY', requestsPerUnit: 0 } }

describe.each(transports)('decisions continue over %s', (transport) => {
  const xds = setUpXds({ transport })
  const { start } = xds
  const numbered = (count: number, padding = '') =>
    Array.from({ length: count }, (_, n) => perHour(`key-${padding}${String(n)}`, 9))

  test.each([
    ['small', () => [perHour('k', 1)], ACTIVE_MS],
    ['10,000 rules', () => numbered(10_000), LARGE_ACTIVE_MS],
    ['5 MB', () => numbered(10_000, 'x'.repeat(480)), LARGE_ACTIVE_MS],
  ])(
    'while a version becomes active: %s',
    async (name, descriptors, msMax) => {
      xds.server.publish({ version: 'v0', configs: [shopConfig()] })
      const limiter = await start({
        XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: String(16 * 1024 * 1024),
        LIMIT_DEADLINE_MS: String(CALL_MS),
      })
      await limiter.decide({ steady: 'open' })
      // Serialized first, because the caller is in the same process.
      const messages = ['v1', 'v2', 'v3'].map((version) => {
        const config = shopConfig(...descriptors(), perHour('newest', Number(version.slice(1))))
        const resources = [{ typeUrl: CONFIG_TYPE_URL, value: configBytes(config) }]
        const header = { versionInfo: version, nonce: version, typeUrl: CONFIG_TYPE_URL }
        return { version, bytes: responseBytes({ ...header, resources }) }
      })
      const caller = callSteadily(limiter)
      const activeMs: number[] = []
      for (const { version, bytes } of messages) {
        const tookMs = await durationWithoutWaits(limiter.pid, async () => {
          xds.server.sendBytes(bytes)
          const result = await xds.server.requestFor(version)
          expect(result).toMatchObject({ versionInfo: version, errorDetail: null })
        })
        activeMs.push(Math.round(tookMs))
      }
      const { wrong, calls, longestMs } = await caller.stop()
      process.stdout.write(
        `${name}, ${transport}: active after ${activeMs.join(', ')} ms; ${String(calls)} calls, ` +
          `the longest ${longestMs.toFixed(1)} ms\n`,
      )
      expect(wrong).toEqual([])
      expect(longestMs).toBeLessThan(STALLS * CALL_MS)
      expect(Math.max(...activeMs)).toBeLessThan(STALLS * msMax)
    },
    TEST_MS_MAX,
  )

  /** Odd versions have faults. */
  const flapping = (n: number) => ({
    version: `v${String(n)}`,
    configs: [
      shopConfig(
        ...(n % 3 === 1 ? numbered(3000) : []),
        perHour('flap', n),
        ...(n % 2 === 1 ? [bad, banned] : []),
      ),
    ],
  })

  test(
    'while versions flap; others than the newest are skipped, rejected ones change nothing',
    async () => {
      const { server } = xds
      server.publish({ version: 'v0', configs: [shopConfig()] })
      const limiter = await start()
      const caller = callSteadily(limiter, { ...steadyVerdicts, rejected: 'OK' })
      let nonce = ''
      for (let n = 1; n <= 40; n += 1) nonce = server.publish(flapping(n))
      const newest = await server.requestFor(nonce)
      expect(newest).toMatchObject({ versionInfo: 'v40', errorDetail: null })
      const results = server.requests.filter(({ responseNonce }) => responseNonce !== '')
      expect(results.length).toBeLessThan(41) // superseded versions have no result
      for (let n = 41; n <= 46; n += 1) {
        const { versionInfo, errorDetail } = await server.requestFor(server.publish(flapping(n)))
        const lastGood = n - (n % 2)
        expect([versionInfo, errorDetail === null]).toEqual([`v${lastGood}`, n === lastGood])
        const limit = `shop.flap: unit=HOUR requests_per_unit=${lastGood},`
        expect(await rlconfig(limiter)).toContain(limit)
      }
      const { wrong, calls } = await caller.stop()
      expect(wrong).toEqual([])
      expect(calls).toBeGreaterThan(0)
    },
    TEST_MS_MAX,
  )

  test(
    'while the server is unavailable; the next stream loads what is newer',
    async () => {
      xds.server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const limiter = await start()
      const caller = callSteadily(limiter)
      xds.server.endStreams(status.UNAVAILABLE)
      await waitFor('the second stream', () =>
        xds.server.requests.some(({ stream }) => stream === 2),
      )
      const isFirst = ({ stream }: { stream: number }) => stream === 2
      expect(xds.server.requests.find(isFirst)).toMatchObject({
        versionInfo: '',
        responseNonce: '',
      })
      xds.server.close()
      const disconnected = async () =>
        (await metricsOf(limiter)).includes('curtail_xds_connected 0')
      await waitFor('the lost connection', disconnected)
      expect(await rlconfig(limiter)).toContain('shop.k: unit=HOUR requests_per_unit=7,')
      await xds.restartServer()
      xds.server.publish({ version: 'v2', configs: [shopConfig(perHour('k', 9))] })
      await waitFor('v2', async () => (await rlconfig(limiter)).includes('requests_per_unit=9,'))
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})

describe('the limiter', () => {
  const xds = setUpXds()
  const { start, cleanups } = xds

  test(
    'opens a new stream on SIGHUP',
    async () => {
      xds.server.publish({ version: 'v1', configs: [shopConfig()] })
      const limiter = await start()
      limiter.child.kill('SIGHUP')
      await waitFor('the second stream', () =>
        xds.server.requests.some(({ stream }) => stream === 2),
      )
      expect(limiter.log.filter(({ reason }) => reason !== undefined)).toEqual([])
    },
    TEST_MS_MAX,
  )

  test(
    'restarts without the server from RULES_COPY, which has the last good version',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'curtail-copy-'))
      cleanups.push(() => rm(folder, { recursive: true }))
      const env = { RULES_COPY: join(folder, 'copy') }
      xds.server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const first = await start(env)
      await xds.server.requestFor(xds.server.publish({ version: 'v2', configs: [shopConfig(bad)] }))
      await first.stop()
      cleanups.pop()
      expect((await readFile(env.RULES_COPY)).includes('v1')).toBe(true)
      const url = `127.0.0.1:${String(await freePort())}`
      const second = await start({ ...env, CONFIG_GRPC_XDS_SERVER_URL: url })
      const config = await rlconfig(second)
      expect(config).toContain('shop.k: unit=HOUR requests_per_unit=7,')
      expect(config).toContain(
        `xDS server ${url}: no valid version has been received since the start`,
      )
    },
    TEST_MS_MAX,
  )
})
