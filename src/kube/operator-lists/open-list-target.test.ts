// Which operator list a command opens: its settings, and lists in files. Objects of the API server
// are in access.test.ts, the only unit test that loads the Kubernetes client, which takes a second.
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { ConfigError, parseConfig } from '../../config/config.ts'
import { optionalString } from '../../config/settings.ts'
import {
  type ListKind,
  objectNamesSetting,
  oneListRequired,
  withListTarget,
} from './open-list-target.ts'

const LIST: ListKind = {
  ...{ fileSetting: 'FILE', objectSetting: 'OBJECTS', kind: 'ConfigMap' },
  ...{ dataKey: 'list.txt', mode: 0o640 },
}
const settings = { FILE: optionalString('a file'), OBJECTS: objectNamesSetting('objects') }
const unset = { names: undefined, KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined }

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-list-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const parse = (env: Readonly<Record<string, string>>) =>
  parseConfig(settings, env, [oneListRequired(LIST, settings)])
const problemOf = (env: Readonly<Record<string, string>>) => {
  try {
    return parse(env).OBJECTS
  } catch (error) {
    return error instanceof ConfigError ? error.problems : error
  }
}

test('exactly one of the two settings is required', () => {
  expect(problemOf({ FILE: '/x' })).toBeUndefined()
  expect(problemOf({ OBJECTS: 'a' })).toEqual(['a'])
  const choice = 'FILE (a file or folder, the same as that of the service) or OBJECTS'
  const both = expect.stringMatching(/ConfigMaps in Kubernetes.*: both are set/)
  expect(problemOf({ FILE: '/x', OBJECTS: 'a' })).toEqual([both])
  expect(problemOf({})).toEqual([expect.stringContaining(choice)])
  expect(problemOf({})).toEqual([expect.stringContaining('neither of them is set')])
})

const longest = 'a'.repeat(253)
const namesOf = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`)

test.each([
  ['one name', 'a', ['a']],
  ['several names', ' a , b.c-9,a ', ['a', 'b.c-9']],
  ['a name of 253 characters', longest, [longest]],
  ['64 names', namesOf(64).join(), namesOf(64)],
])('allows %s', (_name, value, expected) => {
  expect(parse({ OBJECTS: value }).OBJECTS).toEqual(expected)
})

test.each([
  ...['a,', 'A', 'a_b', '.a', 'a.', 'a-', 'a b'].map((value) => [`the name ${value}`, value]),
  ['a name of 254 characters', `a${longest}`],
  ['65 names', namesOf(65).join()],
])('rejects %s', (_name, value) => {
  expect(() => parse({ OBJECTS: value })).toThrow(ConfigError)
})

test('opens a file, or the file of that name in a folder, with the mode of the list', async () => {
  const [path, inFolder] = [join(folder, 'a.txt'), join(folder, 'lists')]
  await mkdir(inFolder)
  for (const given of [path, inFolder])
    await withListTarget(LIST, { ...unset, path: given }, (target) =>
      target.update((documents) => {
        const [{ name } = { name: '' }] = documents
        return { contents: new Map([[name, 'a\n']]), result: undefined }
      }),
    )
  for (const file of [path, join(inFolder, 'list.txt')]) {
    expect(await readFile(file, 'utf8')).toBe('a\n')
    expect((await stat(file)).mode & 0o777).toBe(0o640)
  }
})
