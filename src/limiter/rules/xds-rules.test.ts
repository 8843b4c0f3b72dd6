// Content that was rejected is not parsed under another version, and is reported under each. The
// levels at which a stored version, and the wait for the first version, are logged.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeEach, expect, jest, test } from '@jest/globals'
import {
  CONFIG_TYPE_URL,
  configBytes,
  type ConfigMessage,
  responseBytes,
} from '../../../test/kit/ratelimit/xds-messages.ts'
import { parseConfig } from '../../config/config.ts'
import { ruleFileSettings } from '../settings/settings.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { RULES_TYPE_URL } from './version-parser.ts'
import { openXdsRules, type XdsRulesDeps } from './xds-rules.ts'

type Callbacks = Parameters<XdsRulesDeps['connect']>[0]

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

async function open(
  env: object = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
  onConnect: (on: Callbacks) => void = () => undefined,
) {
  const logTo = (level: string) => (fields: { readonly version?: unknown }, message: string) => {
    logged.push({ level, version: fields.version, message })
  }
  let apply: Callbacks['apply'] | undefined
  const source = await openXdsRules({
    config: parseConfig(ruleFileSettings, { ...env }),
    denyConsumes: true,
    defaultAlgorithm: 'fixed_window',
    stats,
    denyCache: undefined,
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    server: 'xds:1',
    signal: never,
    connect: (on) => {
      apply = on.apply
      onConnect(on)
      return { reconnect: () => undefined, stop: () => Promise.resolve() }
    },
  })
  return {
    state: () => source.state(),
    stop: source.watch(() => undefined),
    apply: async (version: string, config: ConfigMessage, superseded = never) =>
      apply?.(responseOf(version, config), superseded),
  }
}

function responseOf(version: string, config: ConfigMessage) {
  const resources = [{ typeUrl: RULES_TYPE_URL, bytes: configBytes(config) }]
  const about = { nonce: version, typeUrl: RULES_TYPE_URL, controlPlane: '' }
  return { ...about, version, resources, message: Buffer.alloc(0) }
}

const errors = () => logged.filter(({ level }) => level === 'error').map(({ version }) => version)

test('rejected content with another version string is not parsed, but delayed', async () => {
  const { apply, stop } = await open()
  expect(await apply('v1', good)).toBeUndefined()
  expect(await apply('v2', bad)).toEqual(NO_KEY)
  // The abort ends the delay; a parse would report the version.
  expect(await apply('v3', bad, AbortSignal.abort())).toEqual(NO_KEY)
  expect(errors()).toEqual(['v2'])
  expect(stats.service.configLoadError).toBe(1)
  await stop()
})

test('if good and bad content alternate, the bad content is delayed and reported', async () => {
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

const EACH_S = 15
const failing =
  (level: 'info' | 'warn') =>
  ({ onFailure }: Callbacks) => {
    setImmediate(() => {
      onFailure(level)
    })
  }
const waiting = () => {
  setImmediate(() => {
    jest.advanceTimersByTime(EACH_S * 1000)
  })
}

test.each([
  { level: 'info', when: 'before the first attempt', isForced: 'true', connect: () => undefined },
  { level: 'info', when: 'while the server may start', connect: failing('info') },
  { level: 'warn', when: 'later', connect: failing('warn') },
  { level: 'warn', when: `if a server sends none for ${EACH_S} s`, connect: waiting },
])('a stored version is logged at $level $when', async (given) => {
  const { level, isForced = 'false', connect } = given
  const folder = await mkdtemp(join(tmpdir(), 'curtail-xds-'))
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'setImmediate', 'setTimeout'] })
  try {
    const path = join(folder, 'version.pb.gz')
    const resources = [{ typeUrl: CONFIG_TYPE_URL, value: configBytes(good) }]
    const about = { versionInfo: 'v1', nonce: '', typeUrl: CONFIG_TYPE_URL }
    await writeFile(path, gzipSync(responseBytes({ ...about, resources })))
    const env = { XDS_FALLBACK_VERSION: path, FORCE_START_WITHOUT_INITIAL_CONFIG: isForced }
    const { stop } = await open(env, connect)
    expect(logged.filter(({ version }) => version === 'v1')).toMatchObject([{ level }])
    await stop()
  } finally {
    jest.useRealTimers()
    await rm(folder, { recursive: true })
  }
})

test('the wait for the first version is a warning after 5 minutes', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  try {
    const connect = ({ apply }: Callbacks) => {
      setImmediate(() => {
        jest.advanceTimersByTime(330_000)
        void apply(responseOf('v1', good), never)
      })
    }
    const { stop } = await open({}, connect)
    const waits = logged.filter(({ message }) => message.startsWith('waiting'))
    const levels = waits.map(({ level }) => level)
    expect(levels).toEqual([...Array<string>(10).fill('info'), 'warn', 'warn'])
    await stop()
  } finally {
    jest.useRealTimers()
  }
})
