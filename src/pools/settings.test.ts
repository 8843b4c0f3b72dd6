// The settings of a refill: the code secret and the target of the pool.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { SECRET_BYTES } from '../codes/permutation.ts'
import { parseConfig } from '../config/config.ts'
import { codeSecretSetting, poolTargetSetting } from './settings.ts'

describe('CODE_SECRET_FILE', () => {
  const parse = (path?: string) =>
    parseConfig({ CODE_SECRET_FILE: codeSecretSetting }, { CODE_SECRET_FILE: path })
  let folder: string
  let path: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'curtail-secret-'))
    path = join(folder, 'secret')
  })
  afterEach(async () => {
    await rm(folder, { recursive: true })
  })

  test('has the content of the file as its value', async () => {
    const secret = Uint8Array.from({ length: SECRET_BYTES }, (_, at) => 255 - at)
    await writeFile(path, secret)
    expect(Uint8Array.from(parse(path).CODE_SECRET_FILE)).toEqual(secret)
  })

  test.each([0, SECRET_BYTES - 1, SECRET_BYTES + 1])(
    'rejects a file of %d bytes',
    async (bytes) => {
      await writeFile(path, new Uint8Array(bytes))
      expect(() => parse(path)).toThrow(`a readable file of exactly ${SECRET_BYTES} bytes`)
    },
  )

  test('rejects a file that cannot be read, and is required', () => {
    const allowed = `the path of a readable file of exactly ${SECRET_BYTES} bytes`
    const value = JSON.stringify(path)
    expect(() => parse(path)).toThrow(
      `CODE_SECRET_FILE must be ${allowed}: current value is ${value}`,
    )
    expect(() => parse(folder)).toThrow('CODE_SECRET_FILE must be')
    expect(() => parse()).toThrow(`CODE_SECRET_FILE is required: ${allowed}`)
  })
})

describe('POOL_TARGET', () => {
  const parse = (target?: string) =>
    parseConfig({ POOL_TARGET: poolTargetSetting }, { POOL_TARGET: target }).POOL_TARGET

  test.each(['1', '20000', '000000001', '100000000'])('accepts %s', (target) => {
    expect(parse(target)).toBe(Number(target))
  })

  test.each(['0', '100000001', '0000000001', '-1', '1.5', '1e3', ' 10', '10 ', 'many'])(
    'rejects %j',
    (target) => {
      expect(() => parse(target)).toThrow('POOL_TARGET must be an integer from 1 to 100000000')
    },
  )

  test('is required', () => {
    expect(() => parse()).toThrow('POOL_TARGET is required')
  })
})
