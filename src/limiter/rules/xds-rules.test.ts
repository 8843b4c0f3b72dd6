// Content that was rejected is not parsed under another version, and is reported under each. The
// levels at which a stored version, and the wait for the first version, are logged.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, jest, test } from '@jest/globals'
import {
  never,
  openRulesOfXds,
  versionOf,
  type XdsCallbacks,
} from '../../../test/kit/ratelimit/open-xds-rules.ts'
import type { ConfigMessage } from '../../../test/kit/ratelimit/xds-messages.ts'

const good: ConfigMessage = { domain: 'shop' }
const bad: ConfigMessage = { domain: 'shop', descriptors: [{ key: '' }] }
const NO_KEY = {
  message: 'resources[0]: descriptors[0]: descriptor has empty key',
  isRetryable: false,
}

type Rules = Awaited<ReturnType<typeof openRulesOfXds>>
const errors = ({ logged }: Rules) => logged.filter(({ level }) => level === 'error')

test('rejected content with another version string is not parsed, but delayed', async () => {
  const rules = await openRulesOfXds()
  const { apply, stats, stop } = rules
  expect(await apply('v1', good)).toBeUndefined()
  expect(await apply('v2', bad)).toEqual(NO_KEY)
  // The abort ends the delay; a parse would report the version.
  expect(await apply('v3', bad, AbortSignal.abort())).toEqual(NO_KEY)
  expect(errors(rules)).toMatchObject([{ version: 'v2' }])
  expect(stats.service.configLoadError).toBe(1)
  await stop()
})

test('if good and bad content alternate, the bad content is delayed and reported', async () => {
  const rules = await openRulesOfXds()
  const { apply, state, stats, stop } = rules
  await apply('v1', bad)
  expect(await apply('v2', good)).toBeUndefined()
  expect(state().faults).toEqual([])
  const startMs = performance.now()
  expect(await apply('v3', bad)).toEqual(NO_KEY)
  expect(performance.now() - startMs).toBeGreaterThan(900)
  expect(state()).toMatchObject({ isLoaded: true, domains: 1 })
  expect(state().faults.map(({ message }) => message)).toEqual(['descriptor has empty key'])
  expect(errors(rules)).toMatchObject([
    { version: 'v1', message: 'rules rejected: no rules are active' },
    { version: 'v3', message: 'rules rejected: the previous ones stay active' },
  ])
  expect(stats.service.configLoadError).toBe(2)
  await stop()
})

const EACH_S = 15
const failing =
  (level: 'info' | 'warn') =>
  ({ onFailure }: XdsCallbacks) => {
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
    await writeFile(path, gzipSync(versionOf('v1', good).message))
    const env = { XDS_FALLBACK_VERSION: path, FORCE_START_WITHOUT_INITIAL_CONFIG: isForced }
    const { logged, stop } = await openRulesOfXds(env, connect)
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
    const connect = ({ apply }: XdsCallbacks) => {
      setImmediate(() => {
        jest.advanceTimersByTime(330_000)
        void apply(versionOf('v1', good), never)
      })
    }
    const { logged, stop } = await openRulesOfXds({}, connect)
    const waits = logged.filter(({ message }) => message.startsWith('waiting'))
    const levels = waits.map(({ level }) => level)
    expect(levels).toEqual([...Array<string>(10).fill('info'), 'warn', 'warn'])
    await stop()
  } finally {
    jest.useRealTimers()
  }
})
