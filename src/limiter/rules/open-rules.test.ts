// The rules of a folder: loaded at the start, replaced by each valid change until the watch stops.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { ConfigError, parseConfig } from '../../config/config.ts'
import type { Stop } from '../../process/stop.ts'
import { ruleFileSettings } from '../settings/settings.ts'
import { RuleStats } from '../stats/rule-stats.ts'
import { openRules, type LoadedRules } from './load-rules.ts'

const rulesOf = (domain: string) =>
  `domain: ${domain}\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 3}}]\n`
const EMPTY_KEY = 'domain: shop\ndescriptors: [{key: ""}]\n'

let folder: string
let stops: Stop[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-open-rules-'))
  stops = []
  await mkdir(join(folder, 'config'))
})
afterEach(async () => {
  for (const stop of stops) await stop()
  await rm(folder, { recursive: true })
})

const write = (content: string) => writeFile(join(folder, 'config', 'a.yaml'), content)

interface LogLine {
  readonly level: string
  readonly message: string
  readonly faults?: readonly string[]
}

/** Opens the rules of the folder; `opened` is absent if that fails. */
async function open(env: Readonly<Record<string, string>> = {}) {
  const logged: LogLine[] = []
  const logTo = (level: string) => (fields: Partial<LogLine>, message: string) => {
    logged.push({ ...fields, level, message })
  }
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  let clears = 0
  const clear = () => {
    clears++
  }
  const location = { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' }
  const opening = openRules({
    config: parseConfig(ruleFileSettings, { ...location, ...env }),
    denyConsumes: false,
    defaultAlgorithm: 'sliding_window_log',
    stats,
    denyCache: { clear } as never,
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
  })
  const opened = await opening.catch((error: unknown) => error as Error)
  const error = opened instanceof Error ? opened : undefined
  const rules = opened instanceof Error ? undefined : opened
  const paths = () => stats.listCounters().map(({ path }) => path)
  return { rules, error, logged, stats, paths, clears: () => clears }
}

const domainsOf = (rules: LoadedRules | undefined) => [...(rules?.rules().keys() ?? [])]

describe('at the start', () => {
  test('valid files are loaded, with counters for their rules', async () => {
    await write(rulesOf('shop'))
    const { rules, stats, paths, clears, logged } = await open()
    expect(domainsOf(rules)).toEqual(['shop'])
    expect(rules?.state()).toMatchObject({ isLoaded: true, domains: 1, faults: [] })
    const limit = rules?.rules().get('shop')?.any.get('k')?.rules[0]
    expect([limit?.algorithm.name, limit?.limit?.denyConsumes]).toEqual([
      'sliding_window_log',
      false,
    ])
    expect(paths()).toEqual(['shop.k'])
    expect(stats.service).toMatchObject({ configLoadSuccess: 1, configLoadError: 0 })
    expect(clears()).toBe(1)
    expect(logged.map(({ message }) => message)).toEqual(['rules loaded'])
  })

  test('invalid files abort it, and are counted', async () => {
    await write(EMPTY_KEY)
    const { error, stats } = await open()
    expect(error).toBeInstanceOf(ConfigError)
    expect(error?.message).toContain('a.yaml:2: descriptor has empty key')
    expect(stats.service).toMatchObject({ configLoadSuccess: 0, configLoadError: 1 })
  })

  test('invalid files do not abort it if it may be without rules', async () => {
    await write(EMPTY_KEY)
    const { rules, error } = await open({ FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' })
    expect(error).toBeUndefined()
    expect(rules?.state()).toMatchObject({ isLoaded: false, faults: [{ file: 'a.yaml' }] })
  })

  test('files without the required domain abort it', async () => {
    await write(rulesOf('shop'))
    expect((await open({ REQUIRED_DOMAIN: 'shop' })).error).toBeUndefined()
    const { error } = await open({ REQUIRED_DOMAIN: 'other' })
    expect(error?.message).toContain(
      `${join(folder, 'config')}:1: no file has rules for the required domain 'other'`,
    )
  })

  test('files of one domain are merged only if the setting is true', async () => {
    await write(rulesOf('shop'))
    await writeFile(join(folder, 'config', 'b.yaml'), 'domain: shop\ndescriptors: [{key: l}]\n')
    expect((await open()).error?.message).toContain('b.yaml:1')
    const { rules } = await open({ MERGE_DOMAIN_CONFIG: 'true' })
    expect([...(rules?.rules().get('shop')?.any.keys() ?? [])]).toEqual(['k', 'l'])
  })

  test('a copy of the last valid files replaces invalid ones', async () => {
    const RULES_COPY = join(folder, 'copy')
    await write(rulesOf('shop'))
    await open({ RULES_COPY })
    await write(EMPTY_KEY)
    const { rules, stats, paths } = await open({ RULES_COPY })
    expect(domainsOf(rules)).toEqual(['shop'])
    expect(rules?.state().faults).toMatchObject([{ file: 'a.yaml' }])
    expect(paths()).toEqual(['shop.k'])
    expect(stats.service).toMatchObject({ configLoadSuccess: 1, configLoadError: 1 })
  })
})

describe('the watch', () => {
  /** Watches loaded rules; counts the reloads. */
  function watch(opened: Awaited<ReturnType<typeof open>>) {
    const { rules } = opened
    if (rules === undefined) throw new Error('not opened', { cause: opened.error })
    let reloads = 0
    const stop = rules.watch(() => {
      reloads++
    })
    stops.push(stop)
    return { ...opened, rules, stop, reloads: () => reloads }
  }

  test('reloads at SIGHUP, even a rejected set, until it is stopped', async () => {
    await write(rulesOf('shop'))
    const listeners = process.listenerCount('SIGHUP')
    const opened = await open()
    expect(process.listenerCount('SIGHUP')).toBe(listeners)
    const { rules, stats, clears, reloads, stop, paths } = watch(opened)
    expect(process.listenerCount('SIGHUP')).toBe(listeners + 1)
    await waitFor('the first reload', () => reloads() === 1)
    expect(stats.service.configLoadSuccess).toBe(1) // the files are unchanged
    await write(rulesOf('other'))
    process.emit('SIGHUP')
    await waitFor('the new rules', () => reloads() > 1 && domainsOf(rules).join() === 'other')
    expect([clears(), paths()]).toEqual([2, ['other.k']])
    const before = reloads()
    await rm(join(folder, 'config'), { recursive: true })
    process.emit('SIGHUP')
    await waitFor('the rejection', () => reloads() > before && stats.service.configLoadError > 0)
    expect(domainsOf(rules)).toEqual(['other'])
    expect(rules.state().faults).toMatchObject([{ file: join(folder, 'config') }])
    await stop()
    expect(process.listenerCount('SIGHUP')).toBe(listeners)
  })

  test('parses in a thread, which its stop aborts', async () => {
    const threads: unknown[] = []
    const onThread = (message: unknown) => void threads.push(message)
    subscribe('worker_threads', onThread)
    try {
      await write(rulesOf('shop'))
      const { rules, logged, stop } = watch(await open())
      expect(threads).toEqual([])
      await write(rulesOf('other'))
      process.emit('SIGHUP')
      await waitFor('the thread', () => threads.length > 0)
      await stop()
      expect(domainsOf(rules)).toEqual(['shop'])
      expect(logged.at(-1)?.faults).toEqual([
        `${join(folder, 'config')}:1: the thread that parses the rules stopped`,
      ])
    } finally {
      unsubscribe('worker_threads', onThread)
    }
  })
})
