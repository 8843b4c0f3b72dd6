// Versions with faults, without resources and of another type, over plaintext and over mutual TLS:
// each becomes active as a whole, or is rejected and changes nothing; decisions continue.
import { status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import type { AdsServer } from '../../kit/ratelimit/scripted-ads-server.ts'
import {
  callSteadily,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
  transports,
} from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL, configBytes } from '../../kit/ratelimit/xds-messages.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const bad = { key: 'bad', rateLimit: { requestsPerUnit: 1 } }
const REJECTED = 'rules rejected: the previous ones stay active'
const SEVEN = 'shop.k: unit=HOUR requests_per_unit=7,'
const NINE = 'shop.k: unit=HOUR requests_per_unit=9,'

/** Publishes a version with these resources. */
const publishTo = (server: AdsServer, version: string, ...configs: readonly object[]) =>
  server.publish({ version, configs })

describe.each(transports)('over %s, a version', (transport) => {
  const xds = setUpXds({ transport })
  const { start } = xds

  test(
    'with faults is rejected as a whole; the last good one stays active',
    async () => {
      publishTo(xds.server, 'v1', shopConfig(perHour('k', 7)))
      const limiter = await start()
      const caller = callSteadily(limiter)
      const other = { name: 'other', domain: 'other', descriptors: [perHour('k', 1)] }
      const partial = publishTo(xds.server, 'v2', other, shopConfig(perHour('k', 9), bad))
      const rejected = await xds.server.requestFor(partial)
      const fault = `resource "shop": descriptors[3].rate_limit: invalid rate limit unit 'UNKNOWN'`
      expect(rejected).toMatchObject({
        versionInfo: 'v1',
        errorDetail: { code: status.INVALID_ARGUMENT, message: fault },
      })
      const config = await rlconfig(limiter)
      expect(config).toContain(SEVEN)
      expect(config).not.toContain('other.k')
      expect(config).toContain(fault)
      const good = publishTo(xds.server, 'v3', other, shopConfig(perHour('k', 9)))
      const accepted = await xds.server.requestFor(good)
      expect(accepted).toMatchObject({ versionInfo: 'v3', errorDetail: null })
      expect(await rlconfig(limiter)).toContain('other.k: unit=HOUR requests_per_unit=1,')
      expect((await caller.stop()).wrong).toEqual([])
      const metrics = await metricsOf(limiter)
      expect(metrics).toContain('curtail_xds_responses_total{result="nack"} 1\n')
      expect(metrics).toContain('ratelimit_service_config_load_error 1\n')
      expect(metrics).toContain('ratelimit_service_config_load_success 2\n')
      expect(metrics).toContain('curtail_xds_connected 1\n')
    },
    TEST_MS_MAX,
  )

  test(
    'without resources removes all rules',
    async () => {
      publishTo(xds.server, 'v1', shopConfig(perHour('k', 7)))
      const limiter = await start()
      const caller = callSteadily(limiter, { open: 'OK' }) // also without rules
      const empty = await xds.server.requestFor(publishTo(xds.server, 'v2'))
      expect(empty).toMatchObject({ versionInfo: 'v2', errorDetail: null })
      expect(await rlconfig(limiter)).toBe('')
      expect((await limiter.decide({ steady: 'closed' })).overallCode).toBe('OK')
      expect(await metricsOf(limiter)).toContain('curtail_limiter_domains 0\n')
      const warning = 'the version has no resources: no rules are active'
      await waitFor('the warning', () => limiter.log.some(({ msg }) => msg === warning))
      await xds.server.requestFor(publishTo(xds.server, 'v3', shopConfig(perHour('k', 9))))
      expect(await rlconfig(limiter)).toContain(NINE)
      expect((await limiter.decide({ steady: 'closed' })).overallCode).toBe('OVER_LIMIT')
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )

  test(
    'without resources is rejected if a domain is required',
    async () => {
      publishTo(xds.server, 'v1', shopConfig(perHour('k', 7)))
      const limiter = await start({ REQUIRED_DOMAIN: 'shop' })
      const caller = callSteadily(limiter)
      const { versionInfo, errorDetail } = await xds.server.requestFor(publishTo(xds.server, 'v2'))
      expect([versionInfo, errorDetail?.message]).toEqual([
        'v1',
        expect.stringContaining('required domain'),
      ])
      expect(await rlconfig(limiter)).toContain(SEVEN)
      const metrics = await metricsOf(limiter)
      expect(metrics).toContain('curtail_xds_responses_total{result="nack"} 1\n')
      expect(metrics).toContain('curtail_limiter_domains 1\n')
      await xds.server.requestFor(publishTo(xds.server, 'v3', shopConfig(perHour('k', 9))))
      expect(await rlconfig(limiter)).toContain(NINE)
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})

describe('a version', () => {
  const xds = setUpXds()
  const { start } = xds

  test(
    'with many faults is rejected with a message of at most 4 KiB',
    async () => {
      publishTo(xds.server, 'v1', shopConfig())
      await start()
      const faulty = Array.from({ length: 500 }, (_, n) => ({ ...bad, key: `k${String(n)}` }))
      const nonce = publishTo(xds.server, 'v2', shopConfig(...faulty))
      const { errorDetail } = await xds.server.requestFor(nonce)
      const message = errorDetail?.message ?? ''
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4096 + 20)
      expect(message).toMatch(/\nand \d+ more$/)
    },
    TEST_MS_MAX,
  )

  test(
    'of another type is rejected; the last good one stays active',
    async () => {
      publishTo(xds.server, 'v1', shopConfig(perHour('k', 7)))
      const limiter = await start()
      const caller = callSteadily(limiter)
      const typeUrl = 'type.googleapis.com/envoy.config.cluster.v3.Cluster'
      const configs = [shopConfig(perHour('k', 9))]
      const response = xds.server.publish({ version: 'v2', configs, typeUrl })
      const fault = `the type must be ${CONFIG_TYPE_URL}: it is "${typeUrl}"`
      expect(await xds.server.requestFor(response)).toMatchObject({
        versionInfo: 'v1',
        errorDetail: { message: `the version: ${fault}` },
      })
      const resources = [{ typeUrl, value: configBytes(shopConfig(perHour('k', 9))) }]
      const resource = xds.server.publish({ version: 'v3', resources })
      expect(await xds.server.requestFor(resource)).toMatchObject({
        versionInfo: 'v1',
        errorDetail: { message: expect.stringContaining('resources[0]: the type must be') },
      })
      const config = await rlconfig(limiter)
      expect(config).toContain(SEVEN)
      expect(config).toContain('resources[0]: the type must be')
      const rejected = () => limiter.log.filter(({ msg }) => msg === REJECTED)
      await waitFor('the lines of both versions', () => rejected().length > 1)
      expect(rejected()).toMatchObject([
        { version: 'v2', faults: [expect.stringContaining(fault)] },
        { version: 'v3', faults: [expect.stringContaining(fault)] },
      ])
      const metrics = await metricsOf(limiter)
      expect(metrics).toContain('curtail_xds_responses_total{result="nack"} 2\n')
      expect(metrics).toContain('ratelimit_service_config_load_error 2\n')
      await xds.server.requestFor(publishTo(xds.server, 'v4', ...configs))
      expect(await rlconfig(limiter)).toContain(NINE)
      expect((await caller.stop()).wrong).toEqual([])
    },
    TEST_MS_MAX,
  )
})
