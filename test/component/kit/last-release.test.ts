// The tag of the last release, whose commit the cluster tests build.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { checkTag } from '../../dependencies/last-release.ts'

const GIT_MS_MAX = 10_000
const author = ['-c', 'user.name=test', '-c', 'user.email=test@example.com']

let checkout: string
let commit: string

async function git(...args: readonly string[]): Promise<string> {
  const options = { cwd: checkout, timeout: GIT_MS_MAX }
  return (await promisify(execFile)('git', [...author, ...args], options)).stdout.trim()
}

beforeAll(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'curtail-tag-'))
  await git('init', '--quiet')
  await git('commit', '--quiet', '--allow-empty', '--message=a release')
  commit = await git('rev-parse', 'HEAD')
  await git('tag', 'v1.0.0')
  await git('tag', '--annotate', '--message=a release', 'v1.1.0')
})

afterAll(() => rm(checkout, { recursive: true }))

test('the tag of a release must be its commit; a checkout may lack the tag', async () => {
  for (const version of ['1.0.0', '1.1.0', '1.2.0']) await checkTag(checkout, { version, commit })
  const other = '0'.repeat(40)
  for (const version of ['1.0.0', '1.1.0']) {
    const check = checkTag(checkout, { version, commit: other })
    await expect(check).rejects.toThrow(`The tag v${version} is the commit ${commit}, not ${other}`)
  }
})
