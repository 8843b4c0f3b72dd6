// The role `smoke` against real standalone processes: its output for a service that works and for
// services with faults.
import { hash } from 'node:crypto'
import { writeFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startJob } from '../../kit/processes/role-job.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

/** Five times the deadline of a step. */
const RUN_MS_MAX = 50_000
const TOKEN = 'the-token'
const rules = `domain: curtail
descriptors:
  - key: route
    value: create
    descriptors:
      - key: client
        rate_limit: { algorithm: token_bucket, unit: second, requests_per_unit: 2, burst: 20 }
  - key: route
    value: redirect
    descriptors:
      - key: client
        rate_limit: { name: many, algorithm: token_bucket, unit: second, requests_per_unit: 200 }
`

let folder: string
let limited: Standalone
let unlimited: Standalone

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-smoke-'))
  const file = join(folder, 'rules.yaml')
  await writeFile(file, rules)
  limited = await startStandalone({ env: { RATE_LIMITS: file, ADMIN_TOKEN: TOKEN } })
  unlimited = await startStandalone({ env: { ADMIN_TOKEN: TOKEN } })
}, 60_000)

afterAll(async () => {
  await limited.stop()
  await unlimited.stop()
  await rm(folder, { recursive: true })
}, 60_000)

function smoke(service: Standalone, env: Readonly<Record<string, string>> = {}) {
  const { baseUrl, adminUrl } = service
  const given = { SMOKE_URL: baseUrl, ADMIN_URL: adminUrl, ADMIN_TOKEN: TOKEN, ...env }
  return runSmoke(given)
}

async function runSmoke(env: Readonly<Record<string, string>>) {
  const job = startJob({ role: 'smoke', env })
  try {
    return await withinDeadline('the exit of smoke', job.exited, RUN_MS_MAX)
  } finally {
    job.kill()
  }
}

describe('smoke', () => {
  test('prints each step and exits with 0, also right after another run', async () => {
    for (let run = 0; run < 2; run++) {
      const { exitStatus, stdout, stderr } = await smoke(limited)
      expect([exitStatus, stderr]).toEqual([0, ''])
      const [created, resolved, denied, codes, ...more] = stdout.trim().split('\n')
      expect(created).toMatch(/^ok creates: .* \d+ of 20 creates left$/)
      expect(resolved).toMatch(/^ok resolves: \/\w{7} redirects to .* \(302\), limit 200$/)
      expect(denied).toMatch(/^ok is limited: 429 after \d+ by .*, limit 20, Retry-After 1$/)
      expect(codes).toMatch(/^ok has codes: the pool default holds [1-9]\d*$/)
      expect(more).toEqual([])
    }
  }, 60_000)

  test('skips the 429 step if the limit exceeds SMOKE_CREATES_MAX', async () => {
    const { exitStatus, stdout } = await smoke(limited, { SMOKE_CREATES_MAX: '5' })
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^ok is limited: (skipped: the limit is 20 creates|429 after)/m)
  }, 60_000)

  test('sends its API key to a service that requires one', async () => {
    const key = `curtail_${'k'.repeat(43)}`
    const line = { name: 'smoke', creator_id: '1', hash: `sha256:${hash('sha256', key)}` }
    const keys = join(folder, 'api-keys.ndjson')
    await writeFile(keys, `${JSON.stringify(line)}\n`)
    const env = { API_KEYS: keys, API_KEY_REQUIRED: 'true', ADMIN_TOKEN: TOKEN }
    const service = await startStandalone({
      env: { RATE_LIMITS: join(folder, 'rules.yaml'), ...env },
    })
    try {
      const [withKey, without] = await Promise.all([
        smoke(service, { SMOKE_API_KEY: key }),
        smoke(service),
      ])
      expect([withKey.exitStatus, withKey.stderr]).toEqual([0, ''])
      expect(without.exitStatus).toBe(1)
      expect(without.stderr).toContain('returned 401: SMOKE_API_KEY must be a valid API key')
    } finally {
      await service.stop()
    }
  }, 60_000)

  test('fails after its retries, and reports the cause', async () => {
    const [withoutLimits, unreachable, unauthorized] = await Promise.all([
      smoke(unlimited),
      smoke(unlimited, { SMOKE_URL: 'http://127.0.0.1:9' }),
      smoke(limited, { ADMIN_TOKEN: 'another' }),
    ])
    const runs = [withoutLimits, unreachable, unauthorized]
    expect(runs.map(({ exitStatus }) => exitStatus)).toEqual([1, 1, 1])
    expect(withoutLimits.stderr).toMatch(
      /FAILED creates: a response 201 lacks x-ratelimit-limit: is the rate limiter available/,
    )
    expect(unreachable.stderr).toMatch(/FAILED creates: no response from http:\/\/127\.0\.0\.1:9\//)
    expect(unauthorized.stderr).toMatch(/FAILED has codes: GET \/admin\/pools returned 401/)
  }, 60_000)

  test('requires SMOKE_URL', async () => {
    const { exitStatus, stderr } = await runSmoke({})
    expect([exitStatus, stderr]).toEqual([
      2,
      'curtail: SMOKE_URL is required: an http:// or https:// URL\n',
    ])
  }, 30_000)
})
