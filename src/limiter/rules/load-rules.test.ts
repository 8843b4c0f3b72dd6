// The check of rule files after a failed start. test/component/ratelimit loads and reloads them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { limitSettings, ruleFileSettings } from '../settings/settings.ts'
import { ruleFiles } from './load-rules.ts'

const folder = mkdtempSync(join(tmpdir(), 'curtail-load-rules-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

const FILES = 6
const DESCRIPTORS = 5000
const KEY_LENGTH = 180

test('large files are parsed in a thread, so that the deadline of the check can fire', async () => {
  const config = join(folder, 'config')
  mkdirSync(config)
  const keys = Array.from({ length: DESCRIPTORS }, (_, at) => `k${at}`.padEnd(KEY_LENGTH, 'x'))
  const descriptors = [...keys, '""'].map((key) => `  - key: ${key}\n`).join('')
  for (let at = 0; at < FILES; at++)
    writeFileSync(join(config, `${at}.yaml`), `domain: d${at}\ndescriptors:\n${descriptors}`)
  const settings = { ...ruleFileSettings, ...limitSettings }
  const env = { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' }
  const [ofThread, ofProcess] = [process.threadCpuUsage(), process.cpuUsage()]
  const problems = await ruleFiles.findProblems(parseConfig(settings, env))
  expect(problems).toContainEqual(expect.stringMatching(/^0\.yaml:5003: descriptor has empty key/))
  // CPU time: on a busy machine, no thread may run for a while.
  const { user } = process.threadCpuUsage(ofThread)
  expect(user).toBeLessThan(process.cpuUsage(ofProcess).user / 2)
}, 30_000)
