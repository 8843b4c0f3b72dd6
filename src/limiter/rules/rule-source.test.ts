// The rules in force: replaced as a whole or not at all, and every refusal told once.
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { RuleFault, RuleSet } from '../../limits/rule.ts'
import { FileTreeError, type ReadFile } from '../../process/file-tree.ts'
import { OperatorError } from '../../process/role.ts'
import { openRuleSource, type ParsedRules } from './rule-source.ts'

/** A grammar of one line a file: a domain, or `bad`. */
function parse(files: readonly ReadFile[]): ParsedRules {
  const faults = files
    .filter(({ text }) => text.startsWith('bad'))
    .map(({ name, text }) => ({ file: name, line: 3, message: `${text} is bad` }))
  if (faults.length > 0) return { faults }
  const level = {} as never // whose rules are nobody's business here
  return { rules: new Map(files.map(({ text }) => [text, level])) }
}

let files: Record<string, string>
let broken: Error | undefined
let nowMs: number
let loaded: RuleSet[]
let refused: (readonly RuleFault[])[]
let logged: { level: string; fields: unknown; text: string }[]
beforeEach(() => {
  files = { 'a.yaml': 'one' }
  broken = undefined
  nowMs = 1000
  loaded = []
  refused = []
  logged = []
})

const logTo = (level: string) => (fields: unknown, text: string) => {
  logged.push({ level, fields, text })
}

function open(
  given: { mayStartWithout?: boolean; read?: () => Promise<readonly ReadFile[]> } = {},
) {
  const read = async () => {
    await Promise.resolve()
    if (broken !== undefined) throw broken
    return Object.entries(files).map(([name, text]) => ({ name, text }))
  }
  return openRuleSource({
    folder: '/rules',
    readFiles: given.read ?? read,
    parse,
    onLoaded: (rules) => loaded.push(rules),
    onRefused: (faults) => refused.push(faults),
    log: { info: logTo('info'), error: logTo('error') } as never,
    nowMs: () => nowMs,
    mayStartWithout: given.mayStartWithout ?? false,
  })
}

const domainsOf = (source: { rules(): RuleSet }) => [...source.rules().keys()]

describe('the first set', () => {
  test('is in force at once', async () => {
    const source = await open()
    expect(domainsOf(source)).toEqual(['one'])
    expect(source.state()).toEqual({ isLoaded: true, domains: 1, loadedAtMs: 1000, faults: [] })
    expect(loaded).toEqual([source.rules()])
    expect(logged.map(({ text }) => text)).toEqual(['rules loaded'])
  })

  test('may be empty: no rules', async () => {
    files = {}
    const source = await open()
    expect(source.state()).toMatchObject({ isLoaded: true, domains: 0 })
  })

  test('that is bad ends the start with a line for each fault', async () => {
    files = { 'a.yaml': 'bad word', 'b.yaml': 'two', 'c.yaml': 'bad thing' }
    const error = await open().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OperatorError)
    expect((error as Error).message.split('\n')).toEqual([
      'the rules in /rules cannot be used:',
      'a.yaml:3: bad word is bad',
      'c.yaml:3: bad thing is bad',
    ])
    expect(refused).toHaveLength(1)
  })

  test('that has very many faults is told in a bounded number of lines', async () => {
    files = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`f${i}.yaml`, 'bad']))
    const { message } = (await open().catch((thrown: unknown) => thrown)) as Error
    expect(message.split('\n')).toHaveLength(52)
    expect(message).toMatch(/and 450 more$/)
  })

  test('that cannot be read ends the start with the reason', async () => {
    broken = new FileTreeError('/rules', 'there is no such folder')
    await expect(open()).rejects.toThrow(/\/rules:1: there is no such folder/)
  })

  test('that is bad may be waited for where the operator says so', async () => {
    files = { 'a.yaml': 'bad' }
    const source = await open({ mayStartWithout: true })
    expect(source.state()).toMatchObject({ isLoaded: false, domains: 0, loadedAtMs: undefined })
    expect(logged.map(({ level }) => level)).toEqual(['error'])
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

  test('with one bad file changes nothing, and says so once for each change', async () => {
    const source = await open()
    const before = source.rules()
    files = { 'a.yaml': 'other', 'b.yaml': 'bad' }
    expect(await source.reload()).toBe('refused')
    expect(await source.reload()).toBe('unchanged')
    expect(source.rules()).toBe(before)
    const fault = { file: 'b.yaml', line: 3, message: 'bad is bad' }
    expect(source.state()).toMatchObject({ isLoaded: true, loadedAtMs: 1000, faults: [fault] })
    expect(refused).toEqual([[fault]])
    expect(logged.filter(({ level }) => level === 'error')).toHaveLength(1)
    files = { 'a.yaml': 'one' }
    expect(await source.reload()).toBe('loaded')
    expect(source.state().faults).toEqual([])
  })

  test('of the same files does nothing', async () => {
    const source = await open()
    expect(await source.reload()).toBe('unchanged')
    expect(loaded).toHaveLength(1)
  })

  test('that cannot read the files keeps the rules, and takes them up again after', async () => {
    const source = await open()
    broken = new FileTreeError('a.yaml', 'cannot be read: EACCES')
    expect(await source.reload()).toBe('refused')
    expect(await source.reload()).toBe('unchanged')
    expect(domainsOf(source)).toEqual(['one'])
    expect(source.state().faults).toEqual([
      { file: 'a.yaml', line: 1, message: 'cannot be read: EACCES' },
    ])
    broken = undefined
    expect(await source.reload()).toBe('loaded')
    expect(source.state().faults).toEqual([])
  })

  test('that comes during another begins after it, and those that wait share one', async () => {
    const answers: ((files: readonly ReadFile[]) => void)[] = []
    const read = () =>
      new Promise<readonly ReadFile[]>((resolve) => {
        answers.push(resolve)
      })
    const opening = open({ read })
    answers[0]?.([{ name: 'a', text: 'one' }])
    const source = await opening
    const first = source.reload()
    await Promise.resolve()
    const second = source.reload()
    const third = source.reload()
    expect(answers).toHaveLength(2)
    answers[1]?.([{ name: 'a', text: 'two' }])
    expect(await first).toBe('loaded')
    await Promise.resolve()
    expect(answers).toHaveLength(3)
    answers[2]?.([{ name: 'a', text: 'three' }])
    expect([await second, await third]).toEqual(['loaded', 'loaded'])
    expect(domainsOf(source)).toEqual(['three'])
    expect(answers).toHaveLength(3)
  })
})
