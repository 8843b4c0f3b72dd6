// Whether DATA_DIR can be used: it, or the nearest of its parents that exists, must be a folder in
// which files can be created.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { ConfigError } from '../../config/config.ts'
import { checkDataFolder } from './data-folder.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'curtail-test-'))
})
afterEach(() => {
  rmSync(root, { recursive: true })
})

test('a folder that exists or can be created is accepted, and left empty', () => {
  for (const folder of [root, join(root, 'a', 'b'), relative('.', root)]) checkDataFolder(folder)
  expect(readdirSync(root)).toEqual([])
})

test.each([
  ['a file', 'file', 'ENOTDIR'],
  ['a folder in a file', 'file/a', 'ENOTDIR'],
])('%s is rejected', (_name, path, code) => {
  writeFileSync(join(root, 'file'), '')
  const folder = join(root, path)
  const check = () => {
    checkDataFolder(folder)
  }
  expect(check).toThrow(ConfigError)
  expect(check).toThrow(`DATA_DIR ${folder} cannot be used: ${code}`)
})

test('a folder in a file system without files is rejected', () => {
  expect(() => {
    checkDataFolder('/proc/missing/a')
  }).toThrow(/^DATA_DIR \/proc\/missing\/a cannot be used: (ENOENT|EACCES);/) // EACCES: not root
})
