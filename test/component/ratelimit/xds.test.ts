// The `ratelimit` role with rules from an xDS server: how the first version is requested and
// awaited, and what versions contain.
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import {
  closing,
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
  xdsEnvironment,
} from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL, structOf } from '../../kit/ratelimit/xds-messages.ts'
import { startRole } from '../../kit/processes/role-process.ts'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000

const xds = setUpXds()
const { start, cleanups } = xds

describe('the first version', () => {
  test(
    'is requested with the node and the headers; the process starts with it',
    async () => {
      const starting = start({
        CONFIG_GRPC_XDS_NODE_ID: 'limiter-1',
        CONFIG_GRPC_XDS_NODE_METADATA: 'team=edge',
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer secret',
      })
      await waitFor('the first request', () => xds.server.requests.length === 1)
      expect(xds.server.requests[0]).toMatchObject({
        versionInfo: '',
        responseNonce: '',
        typeUrl: CONFIG_TYPE_URL,
        node: { id: 'limiter-1', metadata: structOf({ team: 'edge' }), userAgentName: 'curtail' },
        headers: { authorization: 'Bearer secret' },
      })
      const nonce = xds.server.publish({ version: 'v1', configs: [shopConfig(perHour('k', 7))] })
      const limiter = await starting
      expect(await xds.server.requestFor(nonce)).toMatchObject({
        versionInfo: 'v1',
        node: null,
        errorDetail: null,
      })
      expect(await rlconfig(limiter)).toContain('shop.k: unit=HOUR requests_per_unit=7,')
      expect((await limiter.decide({ steady: 'closed' })).overallCode).toBe('OVER_LIMIT')
    },
    TEST_MS_MAX,
  )

  test(
    'is not awaited with FORCE_START_WITHOUT_INITIAL_CONFIG',
    async () => {
      const limiter = await start({
        FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
        HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true',
      })
      const health = async () => (await fetch(`${limiter.url}/healthcheck`, closing)).status
      expect(await health()).toBe(500)
      expect(await metricsOf(limiter)).toContain('curtail_limiter_domains 0\n')
      const address = `127.0.0.1:${String(xds.server.port)}`
      const expected = `xDS server ${address}: no valid version has been received`
      expect(await rlconfig(limiter)).toContain(expected)
      await waitFor('the stream', () => xds.server.streams() === 1)
      await xds.server.requestFor(xds.server.publish({ version: 'v1', configs: [shopConfig()] }))
      expect(await rlconfig(limiter)).not.toContain(expected)
      expect(await health()).toBe(200)
      expect(await metricsOf(limiter)).toContain('curtail_limiter_domains 1\n')
    },
    TEST_MS_MAX,
  )

  test(
    'is awaited until SIGTERM, which ends the process at once',
    async () => {
      const root = await mkdtemp(join(tmpdir(), 'curtail-xds-'))
      cleanups.push(() => rm(root, { recursive: true }))
      const env = { ...limiterEnvironment(root, 1), ...xdsEnvironment(xds.server.port) }
      const exited = new Promise((resolve) => {
        const onSpawn = (child: ChildProcess) => {
          child.on('exit', resolve)
          void waitFor('the stream', () => xds.server.streams() === 1).then(() =>
            child.kill('SIGTERM'),
          )
        }
        startRole({ role: 'ratelimit', env, onSpawn }).catch(() => undefined) // it never is ready
      })
      expect(await withinDeadline('the exit', exited)).toBe(0)
    },
    TEST_MS_MAX,
  )
})

describe('a version', () => {
  const version = (name: string, ...configs: readonly object[]) =>
    xds.server.publish({ version: name, configs })

  test(
    'may contain our fields, which responses do not return',
    async () => {
      const metadata = structOf({
        tier: 'gold',
        'curtail.dev': { rate_limit: { algorithm: 'token_bucket', burst: 20 } },
      })
      version('v1', shopConfig({ ...perHour('bucket', 3), metadata }, perHour('plain', 3)))
      const env = { DEFAULT_ALGORITHM: 'leaky_bucket', RESPONSE_DYNAMIC_METADATA: 'true' }
      const limiter = await start(env)
      const config = await rlconfig(limiter)
      expect(config).toContain('quota_mode: false, algorithm: token_bucket, burst: 20\n')
      expect(config).toMatch(/shop\.plain: .*, algorithm: leaky_bucket\n/)
      const { dynamicMetadata } = await limiter.decide({ bucket: 'x' })
      expect(JSON.stringify(dynamicMetadata)).toContain('gold')
      expect(JSON.stringify(dynamicMetadata)).not.toContain('curtail.dev')
    },
    TEST_MS_MAX,
  )

  test(
    'in the shape that Envoy Gateway generates is accepted',
    async () => {
      const route = (name: string, requestsPerUnit: number) => ({
        key: name,
        value: name,
        descriptors: [
          {
            key: 'rule-0-match-0',
            value: 'rule-0-match-0',
            descriptors: [
              {
                key: 'rule-0-match-1',
                rateLimit: {
                  unit: 'SECOND',
                  requestsPerUnit,
                  unlimited: false,
                  name: '',
                  replaces: [],
                },
                descriptors: [],
              },
            ],
          },
          { key: 'rule-1-match--1', value: 'rule-1-match--1', rateLimit: { unlimited: true } },
        ],
      })
      const listener = (name: string) => ({
        name,
        domain: name,
        descriptors: [
          route('httproute/default/a/rule/0', 0),
          route('httproute/default/b/rule/0', 5),
        ],
      })
      version('abc', listener('default/eg/http'), listener('default/eg/https'))
      const limiter = await start({ FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' })
      await waitFor('rules', async () => (await rlconfig(limiter)).includes('default/eg/https'))
      const decide = async (name: string) => {
        const first = { key: name, value: name }
        const rule = { key: 'rule-0-match-0', value: 'rule-0-match-0' }
        const entries = [first, rule, { key: 'rule-0-match-1', value: 'x' }]
        const request = { domain: 'default/eg/http', descriptors: [{ entries }] }
        return (await limiter.client.call(request))['overallCode']
      }
      expect(await decide('httproute/default/a/rule/0')).toBe('OVER_LIMIT')
      expect(await decide('httproute/default/b/rule/0')).toBe('OK')
    },
    TEST_MS_MAX,
  )
})
