// The version of the rules that the controller has stored in a Secret: a limiter without a
// connection to the server starts with it, as soon as the file exists and is valid.
import { writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { type MountedSecret, mountSecret } from '../../kit/mounted-secret.ts'
import type { Limiter } from '../../kit/ratelimit/limiter.ts'
import { startAdsServer } from '../../kit/ratelimit/scripted-ads-server.ts'
import {
  closing,
  perHour,
  rlconfig,
  setUpXds,
  shopConfig,
} from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL, configBytes, responseBytes } from '../../kit/ratelimit/xds-messages.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
const NAME = 'version.pb.gz'
const LOADED = 'last valid rules loaded: the xDS server has sent no valid version yet'

const xds = setUpXds()
const { start, cleanups } = xds

/** A version as the server sends it, with a limit. */
function versionWith(requests: number): Buffer {
  const resources = [
    { typeUrl: CONFIG_TYPE_URL, value: configBytes(shopConfig(perHour('k', requests))) },
  ]
  const versionInfo = `v${String(requests)}`
  return responseBytes({ versionInfo, nonce: '', typeUrl: CONFIG_TYPE_URL, resources })
}

async function mount(content: Uint8Array | string): Promise<MountedSecret> {
  const secret = await mountSecret({ [NAME]: content })
  cleanups.push(() => secret.remove())
  return secret
}

const limitOf = async (limiter: Limiter) =>
  /shop\.k: unit=HOUR requests_per_unit=(\d+),/.exec(await rlconfig(limiter))?.[1]
const loadedFrom = ({ log }: Limiter) => log.find(({ msg }) => msg === LOADED)?.['source']

test(
  'starts a limiter that cannot connect; the first version of the server replaces it',
  async () => {
    const secret = await mount(gzipSync(versionWith(7)))
    const port = await freePort()
    const limiter = await start({ XDS_FALLBACK_VERSION: secret.pathOf(NAME) }, port)
    expect((await fetch(`${limiter.adminUrl}/readyz`, closing)).status).toBe(200)
    const loaded = limiter.log.find(({ msg }) => msg === LOADED)
    expect(loaded).toMatchObject({ level: 'info', source: 'fallback version' })
    expect(await limitOf(limiter)).toBe('7')
    expect(await rlconfig(limiter)).toContain('no valid version has been received since the start')
    expect((await limiter.decide({ steady: 'closed' })).overallCode).toBe('OVER_LIMIT')
    const server = await startAdsServer({ port })
    cleanups.push(() => {
      server.close()
    })
    server.publish({ version: 'v9', configs: [shopConfig(perHour('k', 9))] })
    await waitFor('the version of the server', async () => (await limitOf(limiter)) === '9')
    expect(await rlconfig(limiter)).not.toContain('no valid version')
  },
  TEST_MS_MAX,
)

test(
  'is reported while it is unusable, and is used once the Secret contains a valid one',
  async () => {
    const secret = await mount('no gzip')
    const env = {
      XDS_FALLBACK_VERSION: secret.pathOf(NAME),
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true',
    }
    const limiter = await start(env, await freePort())
    const health = async () => (await fetch(`${limiter.url}/healthcheck`, closing)).status
    const warnings = () =>
      limiter.log.filter(({ msg }) => msg === 'cannot read the fallback version of the rules')
    await waitFor('the warning', () => warnings().length > 0)
    expect(warnings()[0]).toMatchObject({ err: { message: 'incorrect header check' } })
    expect(await health()).toBe(500)
    await secret.swap({}) // the file is absent
    await secret.swap({ [NAME]: gzipSync(versionWith(7)) })
    await waitFor('the rules', async () => (await limitOf(limiter)) === '7')
    expect(await health()).toBe(200)
  },
  TEST_MS_MAX,
)

test(
  'is used only if the copy of the last version cannot be used',
  async () => {
    const secret = await mount(gzipSync(versionWith(7)))
    const copy = secret.pathOf('copy')
    const env = { XDS_FALLBACK_VERSION: secret.pathOf(NAME), RULES_COPY: copy }
    await writeFile(copy, versionWith(8))
    const port = await freePort()
    const first = await start(env, port)
    expect([await limitOf(first), loadedFrom(first)]).toEqual(['8', 'copy'])
    await writeFile(copy, versionWith(8).subarray(0, -1))
    const second = await start(env, port)
    expect([await limitOf(second), loadedFrom(second)]).toEqual(['7', 'fallback version'])
  },
  TEST_MS_MAX,
)
