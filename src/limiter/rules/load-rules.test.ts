// The check of rule files after a failed start. test/component/ratelimit loads and reloads them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
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
const SAMPLE_MS = 20

test('large files are parsed in a thread, so that the deadline of the check can pass', async () => {
  const config = join(folder, 'config')
  mkdirSync(config)
  const keys = Array.from({ length: DESCRIPTORS }, (_, at) => `k${at}`.padEnd(KEY_LENGTH, 'x'))
  const descriptors = [...keys, '""'].map((key) => `  - key: ${key}\n`).join('')
  for (let at = 0; at < FILES; at++)
    writeFileSync(join(config, `${at}.yaml`), `domain: d${at}\ndescriptors:\n${descriptors}`)
  const settings = { ...ruleFileSettings, ...limitSettings }
  const env = { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' }
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const startedMs = performance.now()
  const problems = await ruleFiles.findProblems(parseConfig(settings, env))
  const checkMs = performance.now() - startedMs
  await sleep(SAMPLE_MS) // until a blocked event loop has been measured
  delay.disable()
  expect(problems).toContainEqual(expect.stringMatching(/^0\.yaml:5003: descriptor has empty key/))
  expect(delay.max / 1e6).toBeLessThan(checkMs / 2)
}, 30_000)
