// The rule files for values of RUNTIME_*, and that a read is a consistent snapshot.
import { mkdir, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { ruleFilesOf } from './rule-files.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-rules-'))
})
afterEach(async () => {
  await rm(root, { recursive: true })
})

const folder = () => join(root, 'ratelimit', 'config')

test('files are named from the subdirectory; other files there are ignored', async () => {
  await mkdir(join(folder(), 'deep'), { recursive: true })
  await mkdir(join(root, 'ratelimit', 'other'))
  await writeFile(join(root, 'ratelimit', 'other', 'x.yaml'), 'bad')
  await writeFile(join(root, 'ratelimit', 'x.yaml'), 'bad')
  await writeFile(join(folder(), 'a.yaml'), 'one')
  await writeFile(join(folder(), 'deep', 'b.yaml'), 'two')
  const location = {
    RUNTIME_ROOT: root,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_IGNOREDOTFILES: true,
  }
  const names = async (watchesRoot: boolean) => {
    const files = ruleFilesOf({ ...location, RUNTIME_WATCH_ROOT: watchesRoot })
    return (await files.read()).map(({ name }) => name)
  }
  expect(await names(true)).toEqual(['config.a.yaml', 'config.deep.b.yaml'])
  expect(await names(false)).toEqual(['a.yaml', 'deep.b.yaml'])
})

describe('a read is a consistent snapshot, even if a link is swapped at any speed', () => {
  test.each([
    ['RUNTIME_ROOT', true],
    ['..data of a ConfigMap', false],
  ])(
    '%s',
    async (_, watchesRoot) => {
      const link = watchesRoot ? join(root, 'current') : join(folder(), '..data')
      const versions = watchesRoot ? root : folder()
      await mkdir(folder(), { recursive: true })
      for (const version of ['..v1', '..v2']) {
        const path = watchesRoot ? join(version, 'ratelimit', 'config') : version
        await mkdir(join(versions, path), { recursive: true })
        for (let i = 0; i < 10; i++) {
          await writeFile(join(versions, path, `${i}.yaml`), version)
          if (!watchesRoot && version === '..v1')
            await symlink(join('..data', `${i}.yaml`), join(folder(), `${i}.yaml`))
        }
      }
      await symlink('..v1', link)
      const files = ruleFilesOf({
        RUNTIME_ROOT: watchesRoot ? link : root,
        RUNTIME_SUBDIRECTORY: 'ratelimit',
        RUNTIME_APPDIRECTORY: 'config',
        RUNTIME_WATCH_ROOT: watchesRoot,
        RUNTIME_IGNOREDOTFILES: false,
      })
      const swaps = startSwaps(link)
      let consistent = 0 // reads; NaN after an inconsistent or unexpected result
      for (let reads = 0; reads < 40; reads++) {
        const read = await files.read().catch((error: unknown) => String(error))
        if (typeof read !== 'string') consistent++
        else if (!read.includes('the files were changed each time while they were read'))
          consistent = NaN
        const contents = typeof read === 'string' ? ['none'] : read.map(({ text }) => text)
        if (new Set(contents).size !== 1) consistent = NaN
      }
      await swaps.stop()
      expect(consistent).toBeGreaterThan(0)
    },
    30_000,
  )
})

/** Swaps a link between two versions, at varying speed, until it is stopped. */
function startSwaps(link: string) {
  const stopping = new AbortController()
  const isStopped = () => stopping.signal.aborted
  const swaps = (async () => {
    for (let n = 0; !isStopped(); n++) {
      await symlink(n % 2 === 0 ? '..v2' : '..v1', `${link}.next`)
      await rename(`${link}.next`, link)
      for (let turn = 0; turn < (n % 20 === 0 ? 400 : n % 40); turn++) await stat(root)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await swaps
    },
  }
}
