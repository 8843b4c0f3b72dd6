// Content that was rejected is not parsed under another version, and is reported under each.
import { beforeEach, expect, test } from '@jest/globals'
import { configBytes, type ConfigMessage } from '../../../test/kit/ratelimit/xds-messages.ts'
import { parseConfig } from '../../config/config.ts'
import { ruleFileSettings } from '../settings/settings.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { RULES_TYPE_URL } from './version-parser.ts'
import { openXdsRules, type XdsRulesDeps } from './xds-rules.ts'

type Apply = Parameters<XdsRulesDeps['connect']>[0]['apply']

const never = new AbortController().signal
const good: ConfigMessage = { domain: 'shop' }
const bad: ConfigMessage = { domain: 'shop', descriptors: [{ key: '' }] }
const NO_KEY = {
  message: 'resources[0]: descriptors[0]: descriptor has empty key',
  isRetryable: false,
}

let logged: { readonly level: string; readonly version: unknown; readonly message: string }[]
let stats: RuleStats
beforeEach(() => {
  logged = []
  stats = new RuleStats({ nearLimitRatio: 0.8 })
})

async function open() {
  const logTo = (level: string) => (fields: { readonly version?: unknown }, message: string) => {
    logged.push({ level, version: fields.version, message })
  }
  let apply: Apply | undefined
  const source = await openXdsRules({
    config: parseConfig(ruleFileSettings, { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' }),
    denyConsumes: true,
    defaultAlgorithm: 'fixed_window',
    stats,
    denyCache: undefined,
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    server: 'xds:1',
    signal: never,
    connect: (on) => {
      apply = on.apply
      return { reconnect: () => undefined, stop: () => Promise.resolve() }
    },
  })
  return {
    state: () => source.state(),
    stop: source.watch(() => undefined),
    apply: async (version: string, config: ConfigMessage, superseded = never) => {
      const resources = [{ typeUrl: RULES_TYPE_URL, bytes: configBytes(config) }]
      const about = { nonce: version, typeUrl: RULES_TYPE_URL, controlPlane: '' }
      const response = { ...about, version, resources }
      return apply?.({ ...response, message: Buffer.alloc(0) }, superseded)
    },
  }
}

const errors = () => logged.filter(({ level }) => level === 'error').map(({ version }) => version)

test('rejected content is not parsed under another version, but delayed', async () => {
  const { apply, stop } = await open()
  expect(await apply('v1', good)).toBeUndefined()
  expect(await apply('v2', bad)).toEqual(NO_KEY)
  // The abort ends the delay; a parse would report the version.
  expect(await apply('v3', bad, AbortSignal.abort())).toEqual(NO_KEY)
  expect(errors()).toEqual(['v2'])
  expect(stats.service.configLoadError).toBe(1)
  await stop()
})

test('good and bad content in turns: the bad one is delayed and reported', async () => {
  const { apply, state, stop } = await open()
  await apply('v1', bad)
  expect(await apply('v2', good)).toBeUndefined()
  expect(state().faults).toEqual([])
  const startMs = performance.now()
  expect(await apply('v3', bad)).toEqual(NO_KEY)
  expect(performance.now() - startMs).toBeGreaterThan(900)
  expect(state()).toMatchObject({ isLoaded: true, domains: 1 })
  expect(state().faults.map(({ message }) => message)).toEqual(['descriptor has empty key'])
  expect(logged.filter(({ level }) => level === 'error')).toMatchObject([
    { version: 'v1', message: 'rules rejected: no rules are active' },
    { version: 'v3', message: 'rules rejected: the previous ones stay active' },
  ])
  expect(stats.service.configLoadError).toBe(2)
  await stop()
})
