// Lists in real files of a temporary folder.
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createFileTarget } from './list-file-target.ts'
import { addLines, type ListTarget } from './list-target.ts'
import { OperatorError } from './role.ts'

const LOCK = '.curtail-list.lock'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-list-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const targetOf = (path: string, lockMsMax = 10_000) =>
  createFileTarget({ path, nameInFolder: 'list.txt', mode: 0o600, lockMsMax })
const add = (target: ListTarget, ...lines: string[]) =>
  target.update((documents) => ({
    contents: addLines(documents, lines) ?? new Map<string, string>(),
    result: documents.map(({ name }) => name.replace(`${folder}/`, '')),
  }))
const inFolder = (name: string) => join(folder, name)
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('a missing file is empty, and is created with the mode of the list', async () => {
  const target = targetOf(inFolder('list'))
  expect(await target.read()).toEqual([
    { name: inFolder('list'), content: '', bytesMax: 8_388_608 },
  ])
  await add(target, 'a')
  await add(target, 'b')
  expect(await readFile(inFolder('list'), 'utf8')).toBe('a\nb\n')
  expect(await modeOf(inFolder('list'))).toBe('600')
  expect(await readdir(folder)).toEqual(['list'])
})

test('an existing file keeps its mode, and a symlink stays a symlink', async () => {
  await writeFile(inFolder('real'), 'a')
  await chmod(inFolder('real'), 0o640)
  await symlink('real', inFolder('link'))
  await add(targetOf(inFolder('link')), 'b')
  expect(await readFile(inFolder('real'), 'utf8')).toBe('a\nb\n')
  expect(await modeOf(inFolder('real'))).toBe('640')
  expect((await readdir(folder)).sort()).toEqual(['link', 'real'])
  await mkdir(inFolder('lists'))
  await symlink('../real', inFolder('lists/list.txt'))
  await writeFile(inFolder(LOCK), '')
  await expect(add(targetOf(inFolder('lists'), 50), 'c')).rejects.toThrow(inFolder(LOCK))
  await rm(inFolder(LOCK))
  await add(targetOf(inFolder('lists')), 'c')
  expect(await readFile(inFolder('real'), 'utf8')).toBe('a\nb\nc\n')
})

test('all files of a folder are read, and lines are added to list.txt and list-2.txt', async () => {
  await mkdir(inFolder('lists'))
  await writeFile(inFolder('lists/downloaded.txt'), 'd\n')
  await writeFile(inFolder('lists/.hidden.txt'), 'h\n')
  await writeFile(inFolder('lists/README'), 'r\n')
  const target = targetOf(inFolder('lists'))
  const sizes = (await target.read()).map(({ bytesMax }) => bytesMax)
  expect([sizes[0], sizes[7], sizes[8]]).toEqual([8_388_608, 8_388_608, 0])
  const names = await add(target, 'a'.repeat(8_388_600), 'b'.repeat(10))
  expect([names[0], names[1], names.at(-1), names.length]).toEqual([
    ...['lists/list.txt', 'lists/list-2.txt', 'lists/downloaded.txt', 9],
  ])
  expect((await readdir(inFolder('lists'))).sort()).toEqual([
    ...['.hidden.txt', 'README', 'downloaded.txt', 'list-2.txt', 'list.txt'],
  ])
  expect(await readFile(inFolder('lists/list-2.txt'), 'utf8')).toBe(`${'b'.repeat(10)}\n`)
  const removed = new Map([[inFolder('lists/downloaded.txt'), '']])
  await target.update(() => ({ contents: removed, result: undefined }))
  expect(await readFile(inFolder('lists/downloaded.txt'), 'utf8')).toBe('')
})

test('concurrent changes wait for each other, and none is lost', async () => {
  const lines = Array.from({ length: 20 }, (_, at) => `line ${at}`)
  await Promise.all(lines.map((line) => add(targetOf(inFolder('list')), line)))
  const written = (await readFile(inFolder('list'), 'utf8')).trim().split('\n')
  expect(written.sort()).toEqual(lines.sort())
  expect(await readdir(folder)).toEqual(['list'])
})

test('a lock that is not released is an error with its path; the file is unchanged', async () => {
  await writeFile(inFolder('list'), 'a\n')
  await writeFile(inFolder(LOCK), '')
  const failed = await add(targetOf(inFolder('list'), 100), 'b').catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(OperatorError)
  expect((failed as Error).message).toBe(
    `Cannot write ${inFolder('list')}: another command has had the lock ` +
      `${inFolder(LOCK)} for 0.1 s; if no command runs, delete that file`,
  )
  expect(await readFile(inFolder('list'), 'utf8')).toBe('a\n')
})

test('all paths into a folder have the same lock', async () => {
  await mkdir(inFolder('lists'))
  await symlink('lists', inFolder('link'))
  await writeFile(inFolder(`lists/${LOCK}`), '')
  for (const path of ['lists', 'lists/other.txt', 'link', 'link/new.txt'].map(inFolder)) {
    await expect(add(targetOf(path, 50), 'a')).rejects.toThrow(inFolder(`lists/${LOCK}`))
  }
  expect(await readdir(inFolder('lists'))).toEqual([LOCK])
})

const testAsRoot = process.getuid?.() === 0 ? test : test.failing

testAsRoot('a file that root creates or replaces belongs to the user of the service', async () => {
  await chown(folder, 1234, 1235)
  await add(targetOf(inFolder('list')), 'a')
  expect(await stat(inFolder('list'))).toMatchObject({ uid: 1234, gid: 1235 })
  await chown(inFolder('list'), 1236, 1237)
  await add(targetOf(inFolder('list')), 'b')
  expect(await stat(inFolder('list'))).toMatchObject({ uid: 1236, gid: 1237 })
  expect(await modeOf(inFolder('list'))).toBe('600')
})

testAsRoot('without permission to keep the owner of a file, nothing changes', async () => {
  await chmod(folder, 0o777)
  await writeFile(inFolder('list'), 'a\n')
  await chmod(inFolder('list'), 0o644)
  for (const [uid, gid] of [
    [1236, 1235],
    [1234, 1237],
  ] as const) {
    await chown(inFolder('list'), uid, gid)
    process.setegid?.(1235)
    process.seteuid?.(1234)
    const failed = add(targetOf(inFolder('list')), 'b').finally(() => {
      process.seteuid?.(0)
      process.setegid?.(0)
    })
    await expect(failed).rejects.toThrow(
      `Cannot write ${inFolder('list')}: the file must belong to user ${uid} and group ${gid}, ` +
        `which user 1234 cannot set: run the command as user ${uid} or as root`,
    )
    expect(await readFile(inFolder('list'), 'utf8')).toBe('a\n')
    expect(await readdir(folder)).toEqual(['list'])
  }
})

test('a change that fails releases the lock and writes nothing', async () => {
  const target = targetOf(inFolder('list'))
  const failed = target.update(() => {
    throw new OperatorError('no space')
  })
  await expect(failed).rejects.toThrow('no space')
  expect(await readdir(folder)).toEqual([])
})

test('a temporary file of a killed command is replaced', async () => {
  await writeFile(inFolder('.list.tmp'), 'half')
  await chmod(inFolder('.list.tmp'), 0o400)
  await add(targetOf(inFolder('list')), 'a')
  expect(await readFile(inFolder('list'), 'utf8')).toBe('a\n')
  expect(await modeOf(inFolder('list'))).toBe('600')
  expect(await readdir(folder)).toEqual(['list'])
})

test('a file that is not UTF-8 and a missing folder are errors with the path', async () => {
  await writeFile(inFolder('latin1'), Buffer.from([0xe4]))
  const latin1 = `Cannot read ${inFolder('latin1')}: `
  await expect(add(targetOf(inFolder('latin1')), 'a')).rejects.toThrow(latin1)
  expect(await readFile(inFolder('latin1'))).toEqual(Buffer.from([0xe4]))
  const missing = new RegExp(`^Cannot write ${inFolder('none/list')}: .*ENOENT`)
  await expect(add(targetOf(inFolder('none/list')), 'a')).rejects.toThrow(missing)
})
