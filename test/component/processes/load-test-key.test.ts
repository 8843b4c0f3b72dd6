// A k6 scenario against a service that requires API keys: all its creates send API_KEY.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findK6, runK6 } from '../../dependencies/k6.ts'
import { startActionSink } from '../../kit/processes/action-sink.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const BUILD_MS_MAX = 900_000
const RUN_MS_MAX = 60_000

let folder: string
let key: string
let service: Standalone

beforeAll(async () => {
  await findK6()
  folder = await mkdtemp(join(tmpdir(), 'curtail-load-'))
  const env = { API_KEYS: join(folder, 'keys.ndjson') }
  const sink = await startActionSink()
  key = (await runCurtail(['key', 'create', 'load'], { ...env, ADMIN_URL: sink.url })).stdout
  sink.close()
  service = await startStandalone({ env: { ...env, API_KEY_REQUIRED: 'true' } })
}, BUILD_MS_MAX)

afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
}, RUN_MS_MAX)

const run = (name: string, env: Record<string, string>) => {
  const settings = { BASE_URL: service.baseUrl, LINKS: '20', USERS: '160', SHAPE: 'smoke' }
  const slow = { REDIRECT_MS_MAX: '5000', CREATE_MS_MAX: '5000' }
  return runK6(name, { env: { ...settings, ...slow, ...env }, msMax: RUN_MS_MAX })
}

test(
  'with API_KEY, a run meets its thresholds; its reports do not contain the key',
  async () => {
    // As in a file, with a line break.
    const { code, stdout, stderr, json, junit } = await run('mixed', { API_KEY: key })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(key).toMatch(/^curtail_[\w-]{43}\n$/)
    expect(stdout + (json ?? '') + (junit ?? '')).not.toContain(key.trim())
  },
  RUN_MS_MAX,
)

test(
  'without API_KEY, a run stops with the response of the service',
  async () => {
    const { code, stderr } = await run('mixed', {})
    expect(code).not.toBe(0)
    expect(stderr).toContain('Cannot create link 0 of 20: 401')
  },
  RUN_MS_MAX,
)
