// The files of a copy: what is written is read, and what is unreadable is logged.
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { responseBytes } from '../../../test/kit/ratelimit/xds-messages.ts'
import { readDiscoveryResponse } from '../../protobuf/discovery.ts'
import { openFallbackVersion, openRulesCopy, openVersionCopy } from './rules-copy.ts'

const MIB = 1024 * 1024
const files = [
  { name: 'a.yaml', text: 'domain: "é"\n' },
  { name: 'b.yaml', text: '' },
]

let folder: string
let path: string
let logged: unknown[][]
const log = { warn: (...line: unknown[]) => void logged.push(line) }

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-rules-copy-'))
  path = join(folder, 'copy')
  logged = []
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const expectLogged = (message: string, line: string) => {
  expect(logged).toEqual([
    [{ path, err: expect.objectContaining({ message: expect.stringContaining(message) }) }, line],
  ])
}

describe('the copy of rule files', () => {
  const READ = 'cannot read the copy of the rules'

  test('is read as it was written, and only its owner may read it', async () => {
    const copy = openRulesCopy(path, log)
    expect(await copy.read()).toBeUndefined()
    await copy.write(files)
    expect(await copy.read()).toEqual(files)
    await copy.write(files.slice(1))
    expect(await openRulesCopy(path, log).read()).toEqual(files.slice(1))
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['copy'])
    expect(logged).toEqual([])
  })

  test('contains the names and contents of the files alone', async () => {
    const copy = openRulesCopy(path, log)
    await copy.write(files.map((file) => ({ ...file, more: 1 })))
    expect(await copy.read()).toEqual(files)
  })

  test.each([
    ['no JSON', '[', 'Unexpected end of JSON input'],
    ['other JSON', '[{"name":"a"}]', 'invalid_type'],
    ['an unknown member', '[{"name":"a","text":"","more":1}]', 'unrecognized_keys'],
  ])('that is %s is not read', async (_, content, message) => {
    await writeFile(path, content)
    expect(await openRulesCopy(path, log).read()).toBeUndefined()
    expectLogged(message, READ)
  })

  test('may have 32 MiB', async () => {
    const prefix = '[{"name":"a","text":"'
    const sized = (bytes: number) => `${prefix}${'x'.repeat(bytes - prefix.length - 3)}"}]`
    await writeFile(path, sized(32 * MIB))
    expect(await openRulesCopy(path, log).read()).toMatchObject([{ name: 'a' }])
    await writeFile(path, sized(32 * MIB + 1))
    expect(await openRulesCopy(path, log).read()).toBeUndefined()
    expectLogged('at most 33554432 bytes: it has 33554433', READ)
  })

  test('that cannot be written is logged', async () => {
    path = join(folder, 'absent', 'copy')
    await openRulesCopy(path, log).write(files)
    expectLogged('ENOENT', 'cannot write the copy of the rules')
  })
})

const message = responseBytes({
  versionInfo: 'v7',
  nonce: 'n',
  typeUrl: 't',
  resources: [{ typeUrl: 't', value: Buffer.from('value') }],
})

test('the copy of a version contains its response', async () => {
  const copy = openVersionCopy(path, log)
  await copy.write(readDiscoveryResponse(message))
  expect(await copy.read()).toMatchObject({ version: 'v7', message })
})

describe('the fallback version', () => {
  const READ = 'cannot read the fallback version of the rules'
  const read = () => openFallbackVersion(path, log).read()

  test('is a compressed response, and may be absent', async () => {
    expect(await read()).toBeUndefined()
    expect(logged).toEqual([])
    await writeFile(path, gzipSync(message))
    expect(await read()).toMatchObject({ version: 'v7', message })
  })

  test('that is not compressed is logged', async () => {
    await writeFile(path, message)
    expect(await read()).toBeUndefined()
    expectLogged('incorrect header check', READ)
  })

  test('has at most 64 MiB without compression', async () => {
    await writeFile(path, gzipSync(Buffer.alloc(64 * MIB + 1)))
    expect(await read()).toBeUndefined()
    expectLogged('Cannot create a Buffer larger than 67108864 bytes', READ)
  })
})
