// Versions that the server re-sends, or that are too large, and copies with faults: no loop, no end
// of the process, and no second activation.
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import {
  metricsOf,
  perHour,
  rlconfig,
  shopConfig,
  setUpXds,
  startXdsLimiter,
  xdsEnvironment,
} from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL, configBytes, responseBytes } from '../../kit/ratelimit/xds-messages.ts'
import { startRole } from '../../kit/processes/role-process.ts'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { watchPauses } from '../../kit/watch-pauses.ts'

const TEST_MS_MAX = 180_000
const forced = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' }
const bad = { key: 'bad', rateLimit: { requestsPerUnit: 1 } }
/** More than this time is not due to a delay of the client. */
const AT_ONCE_MS = 1000
const STOPS_MAX = 3
/** A version whose parser runs out of heap twice. */
const RETRIED_MS_MAX = 50_000
const REJECTED = 'rules rejected: the previous ones stay active'
const FIRST_REJECTED = 'rules rejected: no rules are active'
const descriptors = Array.from({ length: 100_000 }, (_, n) => perHour(`k${String(n)}`, 1))
const tooMany = [{ typeUrl: CONFIG_TYPE_URL, value: configBytes(shopConfig(...descriptors)) }]

const xds = setUpXds({ resendsRejected: true })
const { start, cleanups } = xds

async function folderFor(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix))
  cleanups.push(() => rm(folder, { recursive: true }))
  return folder
}

const countOf = (log: readonly Record<string, unknown>[], message: string) =>
  log.filter(({ msg }) => msg === message).length
const rejections = () => xds.server.requests.filter(({ errorDetail }) => errorDetail !== null)

describe('a version that the server re-sends', () => {
  test(
    'after its rejection is rejected after a delay; a newer one is applied at once',
    async () => {
      xds.server.publish({ version: 'v1', configs: [shopConfig()] })
      const limiter = await start()
      const publishedMs = performance.now()
      xds.server.publish({ version: 'v2', configs: [shopConfig(bad)] })
      await waitFor('the second rejection', () => rejections().length >= 2)
      const [first, second] = rejections()
      expect(second?.errorDetail).toEqual(first?.errorDetail)
      await waitFor('its line', () => countOf(limiter.log, REJECTED) > 0)
      expect(countOf(limiter.log, REJECTED)).toBe(1)
      expect(await metricsOf(limiter)).toContain('ratelimit_service_config_load_error 1\n')
      const pauses = watchPauses()
      const sentAtMs = performance.now()
      const nonce = xds.server.publish({ version: 'v3', configs: [shopConfig(perHour('k', 9))] })
      const accepted = await xds.server.requestFor(nonce)
      expect(accepted).toMatchObject({ versionInfo: 'v3', errorDetail: null })
      expect(accepted.atMs - sentAtMs - pauses.longestMs()).toBeLessThan(AT_ONCE_MS)
      pauses.stop()
      // Since the publication, because each may be received after a pause of this process. The next
      // delay may be over before the limiter receives the newer version.
      for (const [delays, { atMs }] of rejections().entries())
        expect(atMs - publishedMs).toBeGreaterThan(delays * 900)
    },
    TEST_MS_MAX,
  )

  test(
    'on a new stream is accepted, but activated only if its resources differ',
    async () => {
      xds.server.publish({ version: '1', configs: [shopConfig(), { name: 'b', domain: 'b' }] })
      const limiter = await start()
      const acceptedOn = (stream: number) => () =>
        xds.server.requests.some((each) => each.stream === stream && each.responseNonce !== '')
      xds.server.publish({ version: '1', configs: [{ name: 'b', domain: 'b' }, shopConfig()] })
      limiter.child.kill('SIGHUP')
      await waitFor('the second stream', acceptedOn(2))
      expect(countOf(limiter.log, 'rules loaded')).toBe(1)
      await xds.restartServer() // a control plane that counts from 1
      xds.server.publish({ version: '1', configs: [shopConfig(perHour('k', 9))] })
      await waitFor('k', async () => (await rlconfig(limiter)).includes('requests_per_unit=9,'))
      await waitFor('its line', () => countOf(limiter.log, 'rules loaded') > 1)
      expect(countOf(limiter.log, 'rules loaded')).toBe(2)
    },
    TEST_MS_MAX,
  )
})

describe('a version with too many', () => {
  test(
    'rules for the heap is rejected and retried, also before the first valid one',
    async () => {
      xds.server.publish({ version: 'v1', resources: tooMany })
      const root = await folderFor('curtail-xds-')
      const starting = startRole({
        role: 'ratelimit',
        env: { ...limiterEnvironment(root, 1), ...xdsEnvironment(xds.server.port) },
        nodeOptions: ['--max-old-space-size=64', '--max-semi-space-size=4'],
      })
      const running = starting.then((role) => {
        cleanups.push(() => role.stop())
        return role
      })
      const areRejected = () => rejections().length >= 2
      await Promise.race([running, waitFor('two rejections', areRejected, RETRIED_MS_MAX)])
      expect(rejections()[0]?.errorDetail?.message).toMatch(
        /the rules need (about \d+ MiB of|more) heap/,
      )
      await xds.server.requestFor(xds.server.publish({ version: 'v2', configs: [shopConfig()] }))
      expect(countOf((await running).log, FIRST_REJECTED)).toBeGreaterThanOrEqual(2)
    },
    TEST_MS_MAX,
  )

  test(
    'resources is rejected; the stream stays open',
    async () => {
      xds.server.publish({ version: 'v1', configs: [shopConfig()] })
      await start()
      const value = configBytes(shopConfig())
      const resources = Array.from({ length: 10_001 }, () => ({ typeUrl: CONFIG_TYPE_URL, value }))
      const { errorDetail } = await xds.server.requestFor(
        xds.server.publish({ version: 'v2', resources }),
      )
      expect(errorDetail?.message).toContain('must have at most 10000 resources')
      await xds.server.requestFor(xds.server.publish({ version: 'v3', configs: [shopConfig()] }))
      expect(new Set(xds.server.requests.map(({ stream }) => stream)).size).toBe(1)
    },
    TEST_MS_MAX,
  )
})

test(
  'a stop while a version is applied is no rejection',
  async () => {
    let loaded = 0
    // After a pause of this process, the version is already active at the stop.
    for (let attempt = 0; attempt < STOPS_MAX && loaded !== 1; attempt++) {
      xds.server.publish({ version: 'v1', configs: [shopConfig()] })
      const limiter = await startXdsLimiter(xds.server.port)
      xds.server.publish({ version: 'v2', resources: tooMany })
      await sleep(200) // parsing takes longer
      await limiter.stop()
      loaded = countOf(limiter.log, 'rules loaded')
      expect(countOf(limiter.log, REJECTED)).toBe(0)
    }
    expect(loaded).toBe(1)
  },
  TEST_MS_MAX,
)

test(
  'a SIGHUP before the first version opens a new stream',
  async () => {
    const root = await folderFor('curtail-xds-')
    const env = { ...limiterEnvironment(root, 1), ...xdsEnvironment(xds.server.port) }
    let spawned: ChildProcess | undefined
    const onSpawn = (child: ChildProcess) => {
      spawned = child
    }
    const starting = startRole({ role: 'ratelimit', env, onSpawn })
    await waitFor('the stream', () => xds.server.streams() === 1)
    spawned?.kill('SIGHUP')
    const onSecond = () => xds.server.requests.some(({ stream }) => stream === 2)
    await Promise.race([starting, waitFor('the second stream', onSecond)])
    xds.server.publish({ version: 'v1', configs: [shopConfig()] })
    await (await starting).stop()
  },
  TEST_MS_MAX,
)

test(
  'a copy with faults is reported, and is not used',
  async () => {
    const path = join(await folderFor('curtail-copy-'), 'copy')
    const resources = [{ typeUrl: CONFIG_TYPE_URL, value: configBytes(shopConfig(bad)) }]
    const version = { versionInfo: 'v0', nonce: 'n', typeUrl: CONFIG_TYPE_URL, resources }
    await writeFile(path, responseBytes(version))
    const limiter = await start({ ...forced, RULES_COPY: path })
    await waitFor('the warning', () => countOf(limiter.log, 'the copy of the rules has faults') > 0)
    expect(await rlconfig(limiter)).toContain('no valid version has been received since the start')
  },
  TEST_MS_MAX,
)

test(
  'a stream that was open for longer than the maximum delay starts the delays from the first',
  async () => {
    const limiter = await start({
      ...forced,
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '150ms',
      XDS_CLIENT_BACKOFF_JITTER: 'false',
    })
    for (let n = 1; n <= 4; n += 1) {
      await waitFor('the request', () => xds.server.requests.some(({ stream }) => stream === n))
      await sleep(200) // longer than XDS_CLIENT_BACKOFF_MAX_INTERVAL
      xds.server.endStreams(status.UNAVAILABLE)
    }
    const delays = () =>
      limiter.log.flatMap(({ retryMs }) => (retryMs === undefined ? [] : retryMs))
    await waitFor('the fourth delay', () => delays().length === 4)
    expect(Math.max(...delays().map(Number))).toBe(100)
  },
  TEST_MS_MAX,
)
