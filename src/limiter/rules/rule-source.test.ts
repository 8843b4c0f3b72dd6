// The active rules are replaced as a whole or not at all, and each rejection is reported once.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import { FileTreeError, type ReadFile } from '../../process/file-tree.ts'
import { ConfigError } from '../../config/config.ts'
import type { ParsedRuleFiles } from '../../limits/parse-rules.ts'
import { openRuleSource, TransientParseError } from './rule-source.ts'

/** A grammar of one line per file: a domain, or `bad`. */
function parse(files: readonly ReadFile[]): ParsedRuleFiles {
  parses++
  if (parseError !== undefined) throw parseError
  const faults = files
    .filter(({ text }) => text.startsWith('bad'))
    .map(({ name, text }) => ({ file: name, line: 3, message: `${text} is bad` }))
  if (faults.length > 0) return { faults }
  const level = {} as never // the tests use no rules of the domain
  return { rules: new Map(files.map(({ text }) => [text, level])), warnings: [] }
}

let files: Record<string, string>
let broken: Error | undefined
let parseError: Error | undefined
let nowMs: number
let parses: number
let loaded: RuleSet[]
let rejected: (readonly RuleFault[])[]
let logged: { level: string; fields: unknown; message: string }[]
beforeEach(() => {
  files = { 'a.yaml': 'one' }
  broken = undefined
  parseError = undefined
  nowMs = 1000
  parses = 0
  loaded = []
  rejected = []
  logged = []
})
afterEach(() => {
  jest.useRealTimers()
})

const logTo = (level: string) => (fields: unknown, message: string) => {
  logged.push({ level, fields, message })
}

function open(
  overrides: {
    mayStartWithoutRules?: boolean
    read?: () => Promise<readonly ReadFile[]>
    copy?: readonly ReadFile[]
  } = {},
) {
  const read = async () => {
    await Promise.resolve()
    if (broken !== undefined) throw broken
    return Object.entries(files).map(([name, text]) => ({ name, text }))
  }
  return openRuleSource({
    folder: '/rules',
    readFiles: overrides.read ?? read,
    parse,
    onLoaded: (rules) => loaded.push(rules),
    onRejected: (faults) => rejected.push(faults),
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    nowMs: () => nowMs,
    mayStartWithoutRules: overrides.mayStartWithoutRules ?? false,
    ...(overrides.copy !== undefined && {
      copy: { read: () => Promise.resolve(overrides.copy), write: () => Promise.resolve() },
    }),
  })
}

const domainsOf = (source: { rules(): RuleSet }) => [...source.rules().keys()]

describe('the first set', () => {
  test('is active immediately', async () => {
    const source = await open()
    expect(domainsOf(source)).toEqual(['one'])
    expect(source.state()).toEqual({ isLoaded: true, domains: 1, loadedAtMs: 1000, faults: [] })
    expect(loaded).toEqual([source.rules()])
    expect(logged.map(({ message }) => message)).toEqual(['rules loaded'])
  })

  test('may be empty', async () => {
    files = {}
    const source = await open()
    expect(source.state()).toMatchObject({ isLoaded: true, domains: 0 })
  })

  test('aborts the start if it is invalid, with one line per fault', async () => {
    files = { 'a.yaml': 'bad word', 'b.yaml': 'two', 'c.yaml': 'bad thing' }
    const error = await open().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as Error).message.split('\n')).toEqual([
      'RUNTIME_ROOT: Cannot load the rules in /rules:',
      'a.yaml:3: bad word is bad',
      'c.yaml:3: bad thing is bad',
    ])
    expect(rejected).toHaveLength(1)
  })

  test('with a copy that also has faults aborts the start, with a warning', async () => {
    files = { 'a.yaml': 'bad' }
    const copy = [{ name: 'a.yaml', text: 'bad copy' }]
    await expect(open({ copy })).rejects.toThrow(ConfigError)
    expect(logged).toMatchObject([
      { level: 'warn', fields: { faults: ['a.yaml:3: bad copy is bad'] } },
    ])
  })

  test('with many faults is reported in a bounded number of lines', async () => {
    files = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`f${i}.yaml`, 'bad']))
    const { message } = (await open().catch((thrown: unknown) => thrown)) as Error
    expect(message.split('\n')).toHaveLength(52)
    expect(message).toMatch(/and 450 more$/)
  })

  test('aborts the start with the reason if it cannot be read', async () => {
    broken = new FileTreeError('/rules', 'the folder does not exist')
    await expect(open()).rejects.toThrow(/\/rules:1: the folder does not exist/)
  })

  test('may be invalid with mayStartWithoutRules, and load later', async () => {
    files = { 'a.yaml': 'bad' }
    const source = await open({ mayStartWithoutRules: true })
    expect(source.state()).toMatchObject({ isLoaded: false, domains: 0, loadedAtMs: undefined })
    expect(logged).toMatchObject([
      { level: 'error', message: 'rules rejected: no rules are active' },
    ])
    files = { 'a.yaml': 'good' }
    expect(await source.reload()).toBe('loaded')
    expect(source.state().isLoaded).toBe(true)
  })
})

describe('a reload', () => {
  test('replaces the rules as a whole', async () => {
    const source = await open()
    const before = source.rules()
    files = { 'a.yaml': 'one', 'b.yaml': 'two' }
    nowMs = 2000
    expect(await source.reload()).toBe('loaded')
    expect(domainsOf(source)).toEqual(['one', 'two'])
    expect([...before.keys()]).toEqual(['one'])
    expect(source.state()).toMatchObject({ domains: 2, loadedAtMs: 2000 })
  })

  test('with one invalid file changes nothing, and reports it once per change', async () => {
    const source = await open()
    const before = source.rules()
    files = { 'a.yaml': 'other', 'b.yaml': 'bad' }
    expect(await source.reload()).toBe('rejected')
    expect(await source.reload()).toBe('unchanged')
    expect(source.rules()).toBe(before)
    const fault = { file: 'b.yaml', line: 3, message: 'bad is bad' }
    expect(source.state()).toMatchObject({ isLoaded: true, loadedAtMs: 1000, faults: [fault] })
    expect(rejected).toEqual([[fault]])
    expect(logged.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'rules rejected: the previous ones stay active' },
    ])
    files = { 'a.yaml': 'one' }
    expect(await source.reload()).toBe('loaded')
    expect(source.state().faults).toEqual([])
  })

  test('of the same files does nothing', async () => {
    const source = await open()
    expect(await source.reload()).toBe('unchanged')
    expect(loaded).toHaveLength(1)
    expect(parses).toBe(1)
  })

  test('that cannot read the files keeps the rules, and loads them after recovery', async () => {
    const source = await open()
    broken = new FileTreeError('a.yaml', 'cannot be read: EACCES')
    expect(await source.reload()).toBe('rejected')
    expect(await source.reload()).toBe('unchanged')
    expect(source.isRetryable()).toBe(true)
    expect(domainsOf(source)).toEqual(['one'])
    expect(source.state().faults).toEqual([
      { file: 'a.yaml', line: 1, message: 'cannot be read: EACCES' },
    ])
    broken = undefined
    expect(await source.reload()).toBe('loaded')
    expect(source.isRetryable()).toBe(false)
    expect(source.state().faults).toEqual([])
  })

  test.each([
    ['cannot start to parse the files', new TransientParseError('no thread'), true],
    ['fails to parse the files', new Error('the rules need more heap'), false],
  ])('that %s keeps the rules, and a later one parses', async (_name, error, isRetryable) => {
    const source = await open()
    files = { 'a.yaml': 'two' }
    parseError = error
    expect(await source.reload()).toBe('rejected')
    expect(await source.reload()).toBe('unchanged')
    expect(source.isRetryable()).toBe(isRetryable)
    expect(domainsOf(source)).toEqual(['one'])
    expect(rejected).toHaveLength(1)
    parseError = undefined
    expect(await source.reload()).toBe('loaded')
    expect(source.isRetryable()).toBe(false)
    expect(source.state()).toMatchObject({ domains: 1, faults: [] })
    expect(domainsOf(source)).toEqual(['two'])
  })

  test('of invalid files is not retried', async () => {
    const source = await open()
    files = { 'a.yaml': 'bad' }
    expect(await source.reload()).toBe('rejected')
    expect(source.isRetryable()).toBe(false)
  })

  test('while an earlier read hangs starts no further one, and is reported once', async () => {
    let reads = 0
    let respond: ((files: readonly ReadFile[]) => void) | undefined
    const filesOf = (text: string) => [{ name: 'a.yaml', text }]
    const read = () => {
      reads++
      if (reads !== 2) return Promise.resolve(filesOf(`set-${reads}`))
      return new Promise<readonly ReadFile[]>((resolve) => (respond = resolve))
    }
    const source = await open({ read })
    jest.useFakeTimers()
    for (const result of ['rejected', 'unchanged', 'unchanged'] as const) {
      const reloading = source.reload()
      await jest.advanceTimersByTimeAsync(10_000)
      expect(await reloading).toBe(result)
      expect(source.isRetryable()).toBe(true)
    }
    jest.useRealTimers()
    expect(reads).toBe(2)
    expect(source.state().faults).toMatchObject([
      { message: 'reading the files took longer than 10000 ms' },
    ])
    respond?.(filesOf('outdated'))
    expect(await source.reload()).toBe('loaded')
    expect(domainsOf(source)).toEqual(['set-3'])
  })
})
