// How the rules of an xDS server start and stop, which versions are loaded, and what a failure of
// the parser does.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { never, versionOf, type XdsCallbacks } from '../../../test/kit/ratelimit/open-xds-rules.ts'
import { parseConfig } from '../../config/config.ts'
import { ruleFileSettings } from '../settings/settings.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { openXdsRules } from './xds-rules.ts'

const good = { domain: 'shop' }
const bad = { domain: 'shop', descriptors: [{ key: '' }] }
const descriptors = Array.from({ length: 500 }, (_, at) => ({ key: `key of a limit ${at}` }))
const large = { domain: 'shop', descriptors }

let threads: Worker[]
const onThread = (message: unknown) => {
  const { worker } = message as { worker: Worker }
  threads.push(worker)
}
beforeEach(() => {
  threads = []
  subscribe('worker_threads', onThread)
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'setImmediate', 'setTimeout'] })
})
afterEach(() => {
  unsubscribe('worker_threads', onThread)
  jest.useRealTimers()
})

interface Options {
  readonly isForced?: boolean
  readonly signal?: AbortSignal
  readonly onConnect?: (on: XdsCallbacks) => void
}

async function open({ isForced = true, signal = never, onConnect }: Options = {}) {
  const logged: { level: string; fields: Readonly<Record<string, unknown>>; message: string }[] = []
  const logTo = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    logged.push({ level, fields, message })
  }
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  let stops = 0
  const connected = Promise.withResolvers<XdsCallbacks>()
  const rules = await openXdsRules({
    config: parseConfig(ruleFileSettings, { FORCE_START_WITHOUT_INITIAL_CONFIG: `${isForced}` }),
    ...{ denyConsumes: true, defaultAlgorithm: 'fixed_window', denyCache: undefined },
    ...{ stats, server: 'xds:1', signal },
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    connect: (on) => {
      connected.resolve(on)
      onConnect?.(on)
      const stopConnection = () => {
        stops++
        return Promise.resolve()
      }
      return { reconnect: () => undefined, stop: stopConnection }
    },
  })
  let changes = 0
  const stop = rules.watch(() => {
    changes++
  })
  const { apply } = await connected.promise
  const messages = () => logged.map(({ message }) => message)
  return { rules, stats, logged, messages, apply, stop, changes: () => changes, stops: () => stops }
}

describe('the wait for the first version', () => {
  test('ends if the start is aborted, without rules', async () => {
    const aborting = new AbortController()
    const onConnect = () => {
      setImmediate(() => {
        aborting.abort()
      })
    }
    const { signal } = aborting
    const { rules, stop, stops, messages } = await open({ isForced: false, signal, onConnect })
    expect(rules.state()).toMatchObject({ isLoaded: false, domains: 0, loadedAtMs: undefined })
    expect(messages()).toEqual(['waiting for the first version of the rules'])
    jest.advanceTimersByTime(60_000)
    expect(messages()).toHaveLength(1)
    await stop()
    expect([stops(), jest.getTimerCount()]).toEqual([1, 0])
  })

  test('does not start after an abort', async () => {
    const { rules, stop } = await open({ isForced: false, signal: AbortSignal.abort() })
    expect(rules.state().isLoaded).toBe(false)
    await stop()
  })

  test('ends with the first version, which is parsed without a thread', async () => {
    const onConnect = ({ apply }: XdsCallbacks) => void apply(versionOf('v1', large), never)
    const { rules, stop } = await open({ isForced: false, onConnect })
    expect([...rules.rules().keys()]).toEqual(['shop'])
    expect(threads).toEqual([])
    await stop()
  })
})

test('without a version, the fault is that none was received', async () => {
  const { rules, stop } = await open()
  expect(rules.state().faults).toEqual([
    {
      ...{ file: 'xDS server xds:1', line: 1, path: '' },
      message: 'no valid version has been received since the start',
    },
  ])
  await stop()
})

test('the timer of stored versions stops with the first version', async () => {
  const { apply, stop } = await open()
  expect(jest.getTimerCount()).toBe(1)
  await apply(versionOf('v1', good), never)
  expect(jest.getTimerCount()).toBe(0)
  await stop()
})

test('active content is not loaded twice, but supersedes a rejected version', async () => {
  const { apply, rules, stats, messages, changes, stop } = await open()
  expect(await apply(versionOf('v1', good), never)).toBeUndefined()
  const active = rules.rules()
  expect([changes() > 0, stats.service.configLoadSuccess]).toEqual([true, 1])
  let before = changes()
  await apply(versionOf('v2', bad), never)
  expect(changes()).toBeGreaterThan(before)
  expect(rules.state().faults).toHaveLength(1)
  before = changes()
  expect(await apply(versionOf('v3', good), never)).toBeUndefined()
  expect(changes()).toBeGreaterThan(before)
  expect(rules.state().faults).toEqual([])
  expect(rules.rules()).toBe(active)
  expect(stats.service).toMatchObject({ configLoadSuccess: 1, configLoadError: 1 })
  expect(messages().filter((message) => message === 'rules loaded')).toHaveLength(1)
  await stop()
})

test('a thread that fails rejects its version, which is retryable', async () => {
  const { apply, rules, logged, stop } = await open()
  const applying = apply(versionOf('v1', large), never)
  while (threads.length === 0) await new Promise(setImmediate)
  await threads[0]?.terminate()
  const message = 'the thread that parses the rules stopped'
  const rejection = { message: `the version: ${message}`, isRetryable: true }
  expect(await applying).toEqual(rejection)
  expect(rules.state()).toMatchObject({ isLoaded: false, faults: [{ message }] })
  const err = expect.objectContaining({ message })
  expect(logged.at(-1)).toMatchObject({ level: 'error', fields: { version: 'v1', err } })
  expect(await apply(versionOf('v2', large), AbortSignal.abort())).toEqual(rejection)
  expect(threads).toHaveLength(1)
  await stop()
})
