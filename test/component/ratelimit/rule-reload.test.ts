// Rule files in real folders, changed in every way in which operators and Kubernetes change them:
// the watch reloads the rules, and an invalid set changes nothing.
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ParsedRuleFiles } from '../../../src/limits/parse-rules.ts'
import { type RuleLocation, ruleFilesOf } from '../../../src/limiter/rules/rule-files.ts'
import { openRuleSource, type RuleSource } from '../../../src/limiter/rules/rule-source.ts'
import type { ReadFile } from '../../../src/process/file-tree.ts'
import { watchFiles } from '../../../src/process/watch-files.ts'
import { waitFor } from '../../kit/wait-for.ts'

/** A grammar with one line per file: its domain; a domain that starts with `bad` is a fault. */
function parse(files: readonly ReadFile[]): ParsedRuleFiles {
  const bad = files.filter(({ text }) => !/^[a-z0-9-]+\n$/.test(text) || text.startsWith('bad'))
  if (bad.length > 0)
    return { faults: bad.map(({ name }) => ({ file: name, line: 1, message: 'is bad' })) }
  const level = {} as never // rules are not read in this test
  return { rules: new Map(files.map(({ text }) => [text.trim(), level])), warnings: [] }
}

let root: string
let cleanUps: (() => Promise<unknown>)[]
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-rules-'))
  cleanUps = [() => rm(root, { recursive: true, force: true })]
})
afterEach(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
})

const folder = () => join(root, 'ratelimit', 'config')
const write = async (name: string, domain: string) => {
  await mkdir(folder(), { recursive: true })
  await writeFile(join(folder(), name), `${domain}\n`)
}
/** Replaces a file at once: while `write` truncates it, a reload may find it empty. */
const replace = async (name: string, domain: string) => {
  await writeFile(join(root, 'next'), `${domain}\n`)
  await rename(join(root, 'next'), join(folder(), name))
}

interface Watched {
  readonly source: RuleSource
  readonly errors: unknown[]
  /** The domains of each loaded set, in order. */
  readonly history: readonly string[]
  /** The number of rejected sets. */
  readonly rejections: () => number
  /** Waits until exactly these domains are active. */
  readonly expectActive: (...domains: string[]) => Promise<void>
  /** Waits until the current set is rejected. */
  readonly expectRejected: () => Promise<void>
}

interface Options extends Partial<RuleLocation> {
  /** With an hour, only inotify events report changes. */
  readonly pollMs?: number
  /** Without inotify events, only polls report changes. */
  readonly isPollOnly?: boolean
  readonly mayStartWithoutRules?: boolean
  /** Called between the initial load and the first poll. */
  readonly beforeFirstPoll?: () => Promise<void>
}

/** Loads the rules of a folder, and watches it. */
async function watchRules(options: Options = {}): Promise<Watched> {
  const { pollMs = 50, isPollOnly = false, beforeFirstPoll, ...others } = options
  const { mayStartWithoutRules = false, ...location } = others
  const files = ruleFilesOf({
    RUNTIME_ROOT: root,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_WATCH_ROOT: false,
    RUNTIME_IGNOREDOTFILES: false,
    ...location,
  })
  const errors: unknown[] = []
  const history: string[] = []
  let rejections = 0
  let reloads = 0
  const log = { info: () => undefined, error: () => undefined } as never
  const source = await openRuleSource({
    folder: files.folder,
    readFiles: () => files.read(),
    parse,
    onLoaded: (rules) => history.push([...rules.keys()].sort().join()),
    onRejected: () => rejections++,
    log,
    nowMs: Date.now,
    mayStartWithoutRules,
  })
  await beforeFirstPoll?.()
  const watch = watchFiles({
    scan: async () => ({ ...(await files.scan()), ...(isPollOnly && { folders: [] }) }),
    onChange: async () => {
      await source.reload()
      reloads++
    },
    onError: (error) => errors.push(error),
    pollMs,
    settleMs: 10,
  })
  cleanUps.unshift(() => watch.stop())
  // A change between a poll and its reload is reloaded twice, and the watch starts with both: a
  // test that counts loads, or reloads itself, must start after the first reload.
  await waitFor('the first reload', () => reloads > 0)
  const domains = () => [...source.rules().keys()].sort().join()
  return {
    source,
    errors,
    history,
    rejections: () => rejections,
    expectActive: (...expected) =>
      waitFor(`the active domains ${expected.join()}`, () => domains() === expected.join()),
    expectRejected: () => waitFor('a rejection', () => source.state().faults.length > 0),
  }
}

describe.each([
  ['inotify events', { pollMs: 3_600_000 }],
  ['polls', { isPollOnly: true }],
])('the watch with only %s reloads', (_, how) => {
  test('edited, replaced, added and deleted files', async () => {
    await write('a.yaml', 'one')
    const { expectActive, errors } = await watchRules(how)
    await expectActive('one')
    await write('a.yaml', 'two')
    await expectActive('two')
    await write('.a.new', 'three') // itself a rule file unless dot files are ignored
    await rename(join(folder(), '.a.new'), join(folder(), 'a.yaml'))
    await expectActive('three')
    await write('b.yaml', 'four')
    await expectActive('four', 'three')
    await rm(join(folder(), 'a.yaml'))
    await expectActive('four')
    await rm(join(folder(), 'b.yaml'))
    await expectActive()
    await write('c.yaml', 'five')
    await expectActive('five')
    expect(errors).toEqual([])
  })

  test('each change of a ConfigMap, which swaps ..data, once (#367)', async () => {
    await mkdir(folder(), { recursive: true })
    const writeVersion = async (version: string, domains: readonly string[]) => {
      await mkdir(join(folder(), version))
      for (const [i, domain] of domains.entries())
        await writeFile(join(folder(), version, `${i}.yaml`), `${domain}\n`)
      await symlink(version, join(folder(), '..data_tmp'))
      await rename(join(folder(), '..data_tmp'), join(folder(), '..data'))
    }
    await writeVersion('..2026_01', ['one', 'two'])
    for (const name of ['0.yaml', '1.yaml'])
      await symlink(join('..data', name), join(folder(), name))
    const { expectActive, source, errors } = await watchRules(how)
    await expectActive('one', 'two')
    await writeVersion('..2026_02', ['three', 'two'])
    await rm(join(folder(), '..2026_01'), { recursive: true })
    await expectActive('three', 'two')
    await writeVersion('..2026_03', ['bad', 'two'])
    await waitFor('a rejection', () => source.state().faults.length === 1)
    await expectActive('three', 'two')
    await writeVersion('..2026_04', ['four', 'two'])
    await expectActive('four', 'two')
    expect(source.state().faults).toEqual([])
    expect(errors).toEqual([])
  })
})

describe('an invalid set', () => {
  test('is reported once; the previous set stays active until all files are valid', async () => {
    await write('a.yaml', 'one')
    const { expectActive, expectRejected, rejections, source } = await watchRules()
    await replace('b.yaml', 'bad')
    await expectRejected()
    expect(source.state().faults).toEqual([{ file: 'b.yaml', line: 1, message: 'is bad' }])
    const later = new Date(Date.now() + 5000)
    await utimes(join(folder(), 'b.yaml'), later, later) // an event without a change
    await replace('a.yaml', 'two') // another set, also invalid
    await waitFor('the second rejection', () => rejections() === 2)
    await expectActive('one')
    await write('b.yaml', 'three')
    await expectActive('three', 'two')
    expect(source.state().faults).toEqual([])
  })

  test('is also a folder that is temporarily missing', async () => {
    await write('a.yaml', 'one')
    const { expectActive, expectRejected, errors } = await watchRules()
    await rename(folder(), join(root, 'aside'))
    await expectRejected()
    await expectActive('one')
    await mkdir(folder())
    await write('a.yaml', 'two')
    await expectActive('two')
    await write('a.yaml', 'three') // the watch is on the new folder
    await expectActive('three')
    expect(errors).toEqual([])
  })

  test('is also a folder that exceeds the size limit', async () => {
    await write('a.yaml', 'one')
    const { expectActive, source } = await watchRules()
    await writeFile(join(folder(), 'big.yaml'), Buffer.alloc(17 * 1024 * 1024, 'a'))
    // The incomplete file may be rejected first, for another reason.
    const message = 'the folder contains more than 16777216 bytes'
    await waitFor(message, () => source.state().faults[0]?.message === message)
    await rm(join(folder(), 'big.yaml'))
    await waitFor('no fault', () => source.state().faults.length === 0)
    await expectActive('one')
  })

  test('fails the start if the folder is missing or contains too many files', async () => {
    await expect(watchRules()).rejects.toThrow(/the folder cannot be read: ENOENT/)
    await expect(watchRules({ RUNTIME_WATCH_ROOT: true })).rejects.toThrow(/cannot be read: ENOENT/)
    await mkdir(folder(), { recursive: true })
    for (let i = 0; i <= 1000; i++) await write(`${i}.yaml`, `d${i}`)
    await expect(watchRules()).rejects.toThrow(/more than 1000 files/)
  })

  test('does not fail a start that may be without rules; a valid set is then loaded', async () => {
    await write('a.yaml', 'bad')
    const { expectActive, source } = await watchRules({ mayStartWithoutRules: true })
    expect(source.state().isLoaded).toBe(false)
    await write('a.yaml', 'one')
    await expectActive('one')
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
    'the watch reloads after a swap of the symlink %s, and an edit only after reload()',
    async (link) => {
      await version('v1', 'one')
      await swap(join(root, 'v1'))
      const location = { RUNTIME_ROOT: `${root}/${link}`, RUNTIME_WATCH_ROOT: true }
      const { expectActive, source, history } = await watchRules(location)
      await expectActive('one')
      await swap(await version('v2', 'two'))
      await expectActive('two')
      await version('v2', 'three') // edited in place
      await swap(await version('v3', 'four'))
      await expectActive('four')
      await version('v3', 'five')
      expect(await source.reload()).toBe('loaded')
      await expectActive('five')
      expect(history).toEqual(['one', 'two', 'four', 'five'])
    },
  )

  test('the watch reloads after an edit if the root is not a symlink', async () => {
    await write('a.yaml', 'one')
    const { expectActive } = await watchRules({ RUNTIME_WATCH_ROOT: true })
    await write('a.yaml', 'two')
    await expectActive('two')
  })
})

test('dot files are rule files unless they are ignored, as in the reference', async () => {
  await write('a.yaml', 'one')
  await write('.b.yaml', 'two')
  await symlink('nowhere', join(folder(), 'dangling.yaml'))
  const socket = createServer().listen(join(folder(), 'socket.yaml')) // not a regular file
  cleanUps.unshift(() => new Promise((resolve) => socket.close(resolve)))
  await once(socket, 'listening')
  await (await watchRules()).expectActive('one', 'two')
  await (await watchRules({ RUNTIME_IGNOREDOTFILES: true })).expectActive('one')
})

test('the watch reloads after a change between the initial load and the first poll', async () => {
  await write('a.yaml', 'one')
  const beforeFirstPoll = () => write('a.yaml', 'two')
  const { history } = await watchRules({ pollMs: 3_600_000, isPollOnly: true, beforeFirstPoll })
  expect(history).toEqual(['one', 'two'])
})

test('reload() loads a change immediately, without the watch', async () => {
  await write('a.yaml', 'one')
  const { source } = await watchRules({ pollMs: 3_600_000, isPollOnly: true })
  await write('a.yaml', 'two')
  await chmod(join(folder(), 'a.yaml'), 0o600)
  expect(await source.reload()).toBe('loaded')
  expect([...source.rules().keys()]).toEqual(['two'])
})
