// countTests() counts the tests of a real jest run, and reports the reason of each failure.
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { countTests } from './jest-report.ts'

const TIMEOUT_MS = 60_000
const suites = {
  'good.test.js': "test('good', () => undefined)",
  'bad.test.js':
    "test('bad', () => { expect(2).toBe(3) }); test['skip']('skipped', () => undefined)",
  'broken.test.js': "throw new Error('no such module')",
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-jest-report-'))
  for (const [name, text] of Object.entries(suites)) await writeFile(join(folder, name), text)
  await writeFile(join(folder, 'package.json'), '{"type":"commonjs"}')
  await writeFile(join(folder, 'jest.config.json'), '{"testMatch":["**/*.test.js"],"transform":{}}')
}, TIMEOUT_MS)

afterAll(() => rm(folder, { recursive: true, force: true }))

test(
  'a failed test, a skipped one and a suite that does not load are failures with a reason',
  async () => {
    const outputFile = join(folder, 'result.json')
    const config = ['--rootDir', folder, '--config', join(folder, 'jest.config.json')]
    const args = ['node_modules/jest/bin/jest.js', ...config, '--json', '--outputFile', outputFile]
    const env = { ...process.env, FORCE_COLOR: '1' }
    const { status } = spawnSync(process.execPath, args, { env, timeout: TIMEOUT_MS })
    expect(status).toBe(1)
    const run = { name: 'all', failure: 'exit code 1' }
    const { passed, failures } = await countTests(outputFile, run)
    expect(passed).toBe(1)
    expect(failures).toHaveLength(3)
    const all = failures.join('\n')
    expect(all).toMatch(/bad \(failed\)\n {4}.*expect\(received\)\.toBe\(expected\)/)
    expect(all).toMatch(/Expected: 3\n {4}Received: 2/)
    expect(all).toMatch(/skipped \(pending\)/)
    expect(all).toMatch(/no such module/)
    expect(all).not.toContain('\u001b')
  },
  TIMEOUT_MS,
)
