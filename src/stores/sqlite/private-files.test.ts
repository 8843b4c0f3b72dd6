// Access to the folder of the database and to its files: created without access by others, which
// is removed from existing ones.
import { chmodSync, mkdtempSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { restrictAccess } from './private-files.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'curtail-test-'))
})
afterEach(() => {
  rmSync(root, { recursive: true })
})

const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8)
const write = (path: string, mode: number) => {
  writeFileSync(path, '')
  chmodSync(path, mode)
}

test('a new folder and its files are accessible only by the user', () => {
  const folder = join(root, 'a', 'b')
  expect(restrictAccess(folder)).toEqual([])
  expect([folder, join(folder, 'lock.db'), join(folder, 'curtail.db')].map(modeOf)).toEqual([
    ...['700', '600', '600'],
  ])
  expect(restrictAccess(folder)).toEqual([])
})

test('access by others is removed from an existing folder and its files, and reported', () => {
  const files = ['curtail.db', 'curtail.db-wal', 'lock.db-journal'].map((name) => join(root, name))
  for (const file of files) write(file, 0o664)
  mkdirSync(join(root, 'lost+found'), { mode: 0o755 })
  chmodSync(root, 0o2755)
  const found = [...restrictAccess(root)].sort((a, b) => (a.path < b.path ? -1 : 1))
  expect(found).toEqual([
    { path: root, mode: '0755' },
    ...files.map((path) => ({ path, mode: '0664' })),
  ])
  expect([root, ...files].map(modeOf)).toEqual(['2700', '600', '600', '600'])
  expect(modeOf(join(root, 'lost+found'))).toBe('755')
})

test('a folder with other files keeps its mode, but not the files of the database', () => {
  write(join(root, 'curtail.db'), 0o640)
  const others = ['curtail.db.bak', 'old-curtail.db'].map((name) => join(root, name))
  for (const other of others) write(other, 0o644)
  chmodSync(root, 0o711)
  const [folder, ...files] = restrictAccess(root)
  expect(folder).toMatchObject({ path: root, mode: '0711' })
  expect(folder?.reason).toMatch(/^it also holds other files, such as '(curtail.db.bak|old-.*)'$/)
  expect(files).toEqual([{ path: join(root, 'curtail.db'), mode: '0640' }])
  expect([root, join(root, 'curtail.db'), ...others].map(modeOf)).toEqual([
    ...['711', '600', '644', '644'],
  ])
})

test('a shared folder keeps its mode', () => {
  chmodSync(root, 0o1777)
  expect(restrictAccess(root)).toEqual([
    { path: root, mode: '0777', reason: 'it is a shared folder' },
  ])
  expect(modeOf(root)).toBe('1777')
})

test('a path that is a file, or has one as parent, is an error', () => {
  const file = join(root, 'file')
  write(file, 0o600)
  expect(() => restrictAccess(file)).toThrow('ENOTDIR')
  expect(() => restrictAccess(join(file, 'a'))).toThrow('ENOTDIR')
  expect(() => restrictAccess('/proc/missing/a')).toThrow(/^(ENOENT|EACCES)/) // EACCES: not root
})
