// Rule files in real folders, changed in every way that operators and Kubernetes change them: the
// active rules are reloaded, and an invalid set changes nothing.
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type RuleLocation, ruleFilesOf } from '../../../src/limiter/rules/rule-files.ts'
import {
  openRuleSource,
  type ParsedRules,
  type RuleSource,
} from '../../../src/limiter/rules/rule-source.ts'
import type { ReadFile } from '../../../src/process/file-tree.ts'
import { watchFiles } from '../../../src/process/watch-files.ts'
import { waitFor } from '../../kit/wait-for.ts'

/** A grammar of one line a file: its domain, or what begins with `bad`. */
function parse(files: readonly ReadFile[]): ParsedRules {
  const bad = files.filter(({ text }) => !/^[a-z0-9-]+\n$/.test(text) || text.startsWith('bad'))
  if (bad.length > 0)
    return { faults: bad.map(({ name }) => ({ file: name, line: 1, message: 'is bad' })) }
  const level = {} as never // rules are not read in this test
  return { rules: new Map(files.map(({ text }) => [text.trim(), level])) }
}

let root: string
let ending: (() => Promise<unknown>)[]
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-rules-'))
  ending = [() => rm(root, { recursive: true, force: true })]
})
afterEach(async () => {
  for (const end of ending) await end()
})

const folder = () => join(root, 'ratelimit', 'config')
const put = (name: string, domain: string) => writeFile(join(folder(), name), `${domain}\n`)

interface Watched {
  readonly source: RuleSource
  readonly errors: unknown[]
  /** Domains of each set that was in force, in their order. */
  readonly history: readonly string[]
  readonly refusals: () => number
  /** Waits until these domains are in force. */
  readonly serves: (...domains: string[]) => Promise<void>
  readonly refuses: () => Promise<void>
}

interface Given extends Partial<RuleLocation> {
  /** Of an hour: only the system's notices tell. */
  readonly pollMs?: number
  /** Only the looks tell. */
  readonly isHidden?: boolean
  readonly isWaiting?: boolean
  /** Done between the load at the start and the first look. */
  readonly meanwhile?: () => Promise<void>
}

/** The rules of a folder, and the watch that keeps them. */
async function watched(given: Given = {}): Promise<Watched> {
  const { pollMs = 50, isHidden = false, isWaiting = false, meanwhile, ...place } = given
  const files = ruleFilesOf({
    root,
    subdirectory: 'ratelimit',
    appDirectory: 'config',
    watchesRoot: false,
    ignoresDotFiles: false,
    ...place,
  })
  const errors: unknown[] = []
  const history: string[] = []
  let refusals = 0
  let looks = 0
  const log = { info: () => undefined, error: () => undefined } as never
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: () => files.read(),
    parse,
    onLoaded: (rules) => history.push([...rules.keys()].sort().join()),
    onRejected: () => refusals++,
    log,
    nowMs: Date.now,
    mayStartWithoutRules: isWaiting,
  })
  await meanwhile?.()
  const watch = watchFiles({
    readState: () => files.readState(),
    folders: () => (isHidden ? Promise.resolve([]) : files.folders()),
    onChange: async () => {
      await source.reload()
      looks++
    },
    onError: (error) => errors.push(error),
    pollMs,
    settleMs: 10,
  })
  ending.unshift(() => watch.stop())
  // What changes between a look and the reading after it is read twice, and the watch always begins
  // with both: whoever counts what is read, or reads on their own, begins after it.
  await waitFor('the first look', () => looks > 0)
  const domains = () => [...source.rules().keys()].sort().join()
  return {
    source,
    errors,
    history,
    refusals: () => refusals,
    serves: (...wanted) => waitFor(`${wanted.join()} in force`, () => domains() === wanted.join()),
    refuses: () => waitFor('a refusal', () => source.state().faults.length > 0),
  }
}

describe.each([
  ['by notices of the system alone', { pollMs: 3_600_000 }],
  ['by looking alone', { isHidden: true }],
])('in place, seen %s', (_, how) => {
  test('files are edited, replaced, added and deleted', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'one')
    const { serves, errors } = await watched(how)
    await serves('one')
    await put('a.yaml', 'two')
    await serves('two')
    await put('.a.new', 'three') // itself a rule file unless dot files are ignored
    await rename(join(folder(), '.a.new'), join(folder(), 'a.yaml'))
    await serves('three')
    await put('b.yaml', 'four')
    await serves('four', 'three')
    await rm(join(folder(), 'a.yaml'))
    await serves('four')
    await rm(join(folder(), 'b.yaml'))
    await serves()
    await put('c.yaml', 'five')
    await serves('five')
    expect(errors).toEqual([])
  })

  test('a ConfigMap’s files change by the swap of ..data, each once (#367)', async () => {
    await mkdir(folder(), { recursive: true })
    const write = async (version: string, domains: readonly string[]) => {
      await mkdir(join(folder(), version))
      for (const [i, domain] of domains.entries())
        await writeFile(join(folder(), version, `${i}.yaml`), `${domain}\n`)
      await symlink(version, join(folder(), '..data_tmp'))
      await rename(join(folder(), '..data_tmp'), join(folder(), '..data'))
    }
    await write('..2026_01', ['one', 'two'])
    for (const name of ['0.yaml', '1.yaml'])
      await symlink(join('..data', name), join(folder(), name))
    const { serves, source, errors } = await watched(how)
    await serves('one', 'two')
    await write('..2026_02', ['three', 'two'])
    await rm(join(folder(), '..2026_01'), { recursive: true })
    await serves('three', 'two')
    await write('..2026_03', ['bad', 'two'])
    await waitFor('a refusal', () => source.state().faults.length === 1)
    await serves('three', 'two')
    await write('..2026_04', ['four', 'two'])
    await serves('four', 'two')
    expect(source.state().faults).toEqual([])
    expect(errors).toEqual([])
  })
})

describe('a bad set', () => {
  test('keeps the last valid one, is reported once, and ends with a valid file', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'one')
    const { serves, refuses, refusals, source } = await watched()
    await put('b.yaml', 'bad')
    await refuses()
    expect(source.state().faults).toEqual([{ file: 'b.yaml', line: 1, message: 'is bad' }])
    const later = new Date(Date.now() + 5000)
    await utimes(join(folder(), 'b.yaml'), later, later) // a notice without a change
    await put('a.yaml', 'two') // bad all the same, but another set
    await waitFor('the second refusal', () => refusals() === 2)
    await serves('one')
    await put('b.yaml', 'three')
    await serves('three', 'two')
    expect(source.state().faults).toEqual([])
  })

  test('is also a folder that is missing for a while', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'one')
    const { serves, refuses, errors } = await watched()
    await rename(folder(), join(root, 'aside'))
    await refuses()
    await serves('one')
    await mkdir(folder())
    await put('a.yaml', 'two')
    await serves('two')
    await put('a.yaml', 'three') // the new folder is the one that is watched
    await serves('three')
    expect(errors).toEqual([])
  })

  test('is also one above the size limit', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'one')
    const { serves, source } = await watched()
    await writeFile(join(folder(), 'big.yaml'), Buffer.alloc(17 * 1024 * 1024, 'a'))
    // What was there while it was written may have been refused before, for another reason.
    const message = 'the folder holds more than 16777216 bytes'
    await waitFor(message, () => source.state().faults[0]?.message === message)
    await rm(join(folder(), 'big.yaml'))
    await waitFor('the end of the fault', () => source.state().faults.length === 0)
    await serves('one')
  })

  test('at the start is one where the folder is missing or holds too many files', async () => {
    await expect(watched()).rejects.toThrow(/the folder cannot be read: ENOENT/)
    await expect(watched({ watchesRoot: true })).rejects.toThrow(/cannot be read: ENOENT/)
    await mkdir(folder(), { recursive: true })
    for (let i = 0; i <= 1000; i++) await put(`${i}.yaml`, `d${i}`)
    await expect(watched()).rejects.toThrow(/more than 1000 files/)
  })

  test('that may be waited for is followed by the first good one', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'bad')
    const { serves, source } = await watched({ isWaiting: true })
    expect(source.state().isLoaded).toBe(false)
    await put('a.yaml', 'one')
    await serves('one')
  })
})

describe('RUNTIME_WATCH_ROOT=true', () => {
  const version = async (name: string, domain: string) => {
    const path = join(root, name, 'ratelimit', 'config')
    await mkdir(path, { recursive: true })
    await writeFile(join(path, 'a.yaml'), `${domain}\n`)
    return join(root, name)
  }
  const swap = async (to: string) => {
    await symlink(to, join(root, 'next'))
    await rename(join(root, 'next'), join(root, 'current'))
  }

  test.each([['current'], ['current/']])(
    'the swap of the link %s is a change, an edit behind it is none until reload()',
    async (link) => {
      await version('v1', 'one')
      await swap(join(root, 'v1'))
      const place = { root: `${root}/${link}`, watchesRoot: true }
      const { serves, source, history } = await watched(place)
      await serves('one')
      await swap(await version('v2', 'two'))
      await serves('two')
      await version('v2', 'three') // edited in place
      await swap(await version('v3', 'four'))
      await serves('four')
      await version('v3', 'five')
      expect(await source.reload()).toBe('loaded')
      await serves('five')
      expect(history).toEqual(['one', 'two', 'four', 'five'])
    },
  )

  test('a root that is no link is watched for edits', async () => {
    await mkdir(folder(), { recursive: true })
    await put('a.yaml', 'one')
    const { serves } = await watched({ watchesRoot: true })
    await put('a.yaml', 'two')
    await serves('two')
  })
})

test('dot files are rule files unless they are ignored, as in the reference', async () => {
  await mkdir(folder(), { recursive: true })
  await put('a.yaml', 'one')
  await put('.b.yaml', 'two')
  await symlink('nowhere', join(folder(), 'dangling.yaml'))
  const socket = createServer().listen(join(folder(), 'socket.yaml')) // no file that can be read
  ending.unshift(() => new Promise((resolve) => socket.close(resolve)))
  await once(socket, 'listening')
  await (await watched()).serves('one', 'two')
  await (await watched({ ignoresDotFiles: true })).serves('one')
})

test('a change between the load at the start and the first look is not missed', async () => {
  await mkdir(folder(), { recursive: true })
  await put('a.yaml', 'one')
  const meanwhile = () => put('a.yaml', 'two')
  const { history } = await watched({ pollMs: 3_600_000, isHidden: true, meanwhile })
  expect(history).toEqual(['one', 'two'])
})

test('the reload() of SIGHUP loads a change at once, without a watch', async () => {
  await mkdir(folder(), { recursive: true })
  await put('a.yaml', 'one')
  const { source } = await watched({ pollMs: 3_600_000, isHidden: true })
  await put('a.yaml', 'two')
  await chmod(join(folder(), 'a.yaml'), 0o600)
  expect(await source.reload()).toBe('loaded')
  expect([...source.rules().keys()]).toEqual(['two'])
})
