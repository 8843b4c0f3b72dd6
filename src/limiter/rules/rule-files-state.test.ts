// The state of rule files changes with the files, and a missing folder is an error.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { ruleFilesOf } from './rule-files.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-rule-files-'))
})
afterEach(async () => {
  await rm(root, { recursive: true })
})

const filesOf = (of: { root?: string; watchesRoot?: boolean; ignoresDotFiles?: boolean } = {}) =>
  ruleFilesOf({
    RUNTIME_ROOT: of.root ?? root,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_WATCH_ROOT: of.watchesRoot ?? false,
    RUNTIME_IGNOREDOTFILES: of.ignoresDotFiles ?? false,
  })
const folder = () => join(root, 'ratelimit', 'config')

describe('reading', () => {
  test('an empty folder has no files, a missing one is an error', async () => {
    await mkdir(join(root, 'ratelimit'))
    await expect(filesOf().read()).rejects.toThrow('the folder cannot be read: ENOENT')
    const watched = filesOf({ watchesRoot: true }).read()
    await expect(watched).rejects.toThrow('the folder does not exist')
    await mkdir(folder(), { recursive: true })
    expect(await filesOf().read()).toEqual([])
    expect(await filesOf({ watchesRoot: true }).read()).toEqual([])
    expect(filesOf().folder).toBe(folder())
  })

  test('dot files are ignored only if the setting is true', async () => {
    await mkdir(folder(), { recursive: true })
    await writeFile(join(folder(), '.a.yaml'), 'a')
    const namesOf = async (ignoresDotFiles: boolean) =>
      (await filesOf({ ignoresDotFiles }).read()).map(({ name }) => name)
    expect(await namesOf(false)).toEqual(['.a.yaml'])
    expect(await namesOf(true)).toEqual([])
  })

  test('at most 1000 files and 16 MiB', async () => {
    await mkdir(folder(), { recursive: true })
    const write = (name: string, bytes: number) =>
      writeFile(join(folder(), `${name}.yaml`), 'x'.repeat(bytes))
    await write('large', 16 * 1024 * 1024)
    expect(await filesOf().read()).toHaveLength(1)
    await write('more', 1)
    await expect(filesOf().read()).rejects.toThrow('16777216')
    await write('large', 0)
    for (let at = 0; at < 998; at++) await write(String(at), 0)
    expect(await filesOf().read()).toHaveLength(1000)
    await write('one-more', 0)
    await expect(filesOf().read()).rejects.toThrow('1000')
  })
})

describe('the state', () => {
  test('of files changes with them', async () => {
    const files = filesOf()
    const missing = await files.scan()
    expect(missing.state).toMatch(/^error: /)
    expect(missing.folders).toEqual([])
    await mkdir(folder(), { recursive: true })
    await writeFile(join(folder(), 'a.yaml'), 'a')
    const first = await files.scan()
    expect(await files.scan()).toEqual(first)
    expect(first.folders).toEqual([folder()])
    await writeFile(join(folder(), 'a.yaml'), 'ab')
    expect((await files.scan()).state).not.toBe(first.state)
  })

  test('of a linked root is its link', async () => {
    for (const version of ['v1', 'v2']) {
      await mkdir(join(root, version, 'ratelimit', 'config'), { recursive: true })
    }
    const link = join(root, 'current')
    const files = filesOf({ root: link, watchesRoot: true })
    await symlink('v1', link)
    const first = await files.scan()
    expect(first.folders).toEqual([root])
    await writeFile(join(root, 'v1', 'ratelimit', 'config', 'a.yaml'), 'a')
    expect(await files.scan()).toEqual(first)
    await rm(link)
    await symlink('v2', link)
    expect((await files.scan()).state).not.toBe(first.state)
  })

  test('of a root that is no link is that of its files', async () => {
    await mkdir(folder(), { recursive: true })
    const files = filesOf({ watchesRoot: true })
    const first = await files.scan()
    expect(first.folders).toEqual(expect.arrayContaining([join(root, '..'), folder()]))
    await writeFile(join(folder(), 'a.yaml'), 'a')
    expect((await files.scan()).state).not.toBe(first.state)
  })
})
