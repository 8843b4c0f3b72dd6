// The copy of the last valid rules: when it is read and written, and warnings about rules.
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import type { ParsedRuleFiles } from '../../limits/parse-rules.ts'
import type { ReadFile } from '../../process/file-tree.ts'
import { ConfigError } from '../../config/config.ts'
import { openRuleSource } from './rule-source.ts'

/** A grammar of one line per file: a domain, `bad`, or `error`, for which the parser fails. */
function parse(files: readonly ReadFile[]): ParsedRuleFiles {
  if (files.some(({ text }) => text === 'error')) throw new Error('the parser failed')
  const bad = files.filter(({ text }) => text.startsWith('bad'))
  if (bad.length > 0) {
    return { faults: bad.map(({ name }) => ({ file: name, line: 3, message: 'is bad' })) }
  }
  const level = {} as never // the tests use no rules of the domain
  return { rules: new Map(files.map(({ text }) => [text, level])), warnings }
}

let files: readonly ReadFile[]
let warnings: readonly RuleFault[]
let written: (readonly ReadFile[])[]
let loaded: string[]
let logged: { level: string; fields: unknown; message: string }[]
beforeEach(() => {
  files = [{ name: 'a.yaml', text: 'one' }]
  warnings = []
  written = []
  loaded = []
  logged = []
})

const logTo = (level: string) => (fields: unknown, message: string) => {
  logged.push({ level, fields, message })
}
const copyOf = (text?: string) => ({
  read: () => Promise.resolve(text === undefined ? undefined : [{ name: 'copy.yaml', text }]),
  write: (rules: readonly ReadFile[]) => Promise.resolve(void written.push(rules)),
})

function open(given: { copy?: ReturnType<typeof copyOf>; mayStartWithoutRules?: boolean } = {}) {
  return openRuleSource({
    folder: '/rules',
    readFiles: () => Promise.resolve(files),
    parse,
    onLoaded: (rules) => loaded.push(domainsOf(rules).join()),
    onRejected: () => undefined,
    log: { info: logTo('info'), warn: logTo('warn'), error: logTo('error') } as never,
    nowMs: () => 1000,
    mayStartWithoutRules: false,
    ...given,
  })
}

const domainsOf = (rules: RuleSet) => [...rules.keys()]
const levelsAndMessages = () => logged.map(({ level, message }) => [level, message])
const bad = [{ name: 'a.yaml', text: 'bad' }]

describe('the copy', () => {
  test('replaces an invalid first set, which stays rejected', async () => {
    files = bad
    const source = await open({ copy: copyOf('kept') })
    expect(domainsOf(source.rules())).toEqual(['kept'])
    expect(loaded).toEqual(['kept'])
    expect(source.state()).toEqual({
      ...{ isLoaded: true, domains: 1, loadedAtMs: 1000 },
      faults: [{ file: 'a.yaml', line: 3, message: 'is bad' }],
    })
    expect(logged).toMatchObject([
      { level: 'warn', fields: { folder: '/rules', domains: 1 } },
      { level: 'error', message: 'rules rejected: the previous ones stay active' },
    ])
    expect(written).toEqual([])
  })

  test('precedes a start without rules', async () => {
    files = bad
    const source = await open({ copy: copyOf('kept'), mayStartWithoutRules: true })
    expect(domainsOf(source.rules())).toEqual(['kept'])
  })

  test('is not read if the first set is valid', async () => {
    const copy = { ...copyOf(), read: () => Promise.reject(new Error('the copy is read')) }
    expect(domainsOf((await open({ copy })).rules())).toEqual(['one'])
    expect(levelsAndMessages()).toEqual([['info', 'rules loaded']])
  })

  test.each([
    ['is not configured', undefined],
    ['does not exist', copyOf()],
  ])('that %s replaces nothing', async (_, copy) => {
    files = bad
    await expect(open(copy && { copy })).rejects.toThrow(ConfigError)
    expect(logged).toEqual([])
    const source = await open({ ...(copy && { copy }), mayStartWithoutRules: true })
    expect(source.state()).toMatchObject({ isLoaded: false, domains: 0 })
    expect(levelsAndMessages()).toEqual([['error', 'rules rejected: no rules are active']])
  })

  test('that the parser cannot parse aborts the start, with the error in the log', async () => {
    files = bad
    await expect(open({ copy: copyOf('error') })).rejects.toThrow('a.yaml:3: is bad')
    const err = expect.objectContaining({ message: 'the parser failed' })
    expect(logged).toEqual([
      {
        level: 'warn',
        fields: { folder: '/rules', err },
        message: 'cannot parse the copy of the rules',
      },
    ])
  })

  test('contains each valid set', async () => {
    const source = await open({ copy: copyOf() })
    const [first, second] = [files, [{ name: 'b.yaml', text: 'two' }]]
    files = bad
    await source.reload()
    files = second
    await source.reload()
    await source.reload()
    expect(written).toEqual([first, second])
  })
})

test('warnings do not reject a set, and are logged', async () => {
  warnings = [{ file: 'a.yaml', line: 7, message: 'probably a mistake' }]
  const source = await open()
  expect(source.state()).toMatchObject({ isLoaded: true, faults: [] })
  expect(logged).toEqual([
    { level: 'info', fields: { folder: '/rules', domains: 1 }, message: 'rules loaded' },
    {
      level: 'warn',
      fields: { folder: '/rules', faultCount: 1, faults: ['a.yaml:7: probably a mistake'] },
      message: 'rules loaded with warnings',
    },
  ])
})

test('an error of the parser is a fault of the folder', async () => {
  const source = await open()
  files = [{ name: 'a.yaml', text: 'error' }]
  expect(await source.reload()).toBe('rejected')
  expect(source.state().faults).toEqual([{ file: '/rules', line: 1, message: 'the parser failed' }])
  expect(levelsAndMessages().at(-1)).toEqual([
    'error',
    'rules rejected: the previous ones stay active',
  ])
})

test.each([
  ['a name', [{ name: 'b.yaml', text: 'one' }]],
  ['the content of a later file', [...bad.map(({ name }) => ({ name, text: 'one' })), ...bad]],
])('%s that changes is a change of the set', async (_, changed) => {
  const source = await open()
  files = changed
  expect(await source.reload()).not.toBe('unchanged')
})

test.each([
  [50, undefined],
  [51, 'and 1 more'],
])('of %i faults, at most 50 are listed', async (count, more) => {
  files = Array.from({ length: count }, (_, at) => ({ name: `${at}.yaml`, text: 'bad' }))
  const error: unknown = await open().catch((thrown: unknown) => thrown)
  const lines = error instanceof ConfigError ? error.problems : []
  expect(lines.slice(0, 2)).toEqual([
    'RUNTIME_ROOT: Cannot load the rules in /rules:',
    '0.yaml:3: is bad',
  ])
  expect(lines[51]).toBe(more)
  expect(lines).toHaveLength(more === undefined ? 51 : 52)
})
