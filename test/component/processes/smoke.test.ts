// The role `smoke` against a real standalone process: its output for a working service and for
// faulty ones.
import { writeFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startJob } from '../../kit/processes/role-job.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { withinDeadline } from '../../kit/wait-for.ts'

/** Two steps of ten seconds each, on a slow machine. */
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
    return await withinDeadline('the end of smoke', job.exited, RUN_MS_MAX)
  } finally {
    job.kill()
  }
}

describe('smoke', () => {
  test('prints each step that works, and exits with 0; also right after another run', async () => {
    for (let run = 0; run < 2; run++) {
      const { exitStatus, stdout, stderr } = await smoke(limited)
      expect([exitStatus, stderr]).toEqual([0, ''])
      const [shortened, followed, refused, codes, ...more] = stdout.trim().split('\n')
      expect(shortened).toMatch(/^ok shortens: .* of 20 creates \d+ are left$/)
      expect(followed).toMatch(/^ok follows: \/\w{7} leads to .* \(302\), limit 200$/)
      expect(refused).toMatch(/^ok is refused: 429 after \d+ by .*, limit 20, Retry-After 1$/)
      expect(codes).toMatch(/^ok has codes: the pool default holds [1-9]\d*$/)
      expect(more).toEqual([])
    }
  }, 60_000)

  test('skips the 429 step if the limit exceeds SMOKE_CREATES_MAX', async () => {
    const { exitStatus, stdout } = await smoke(limited, { SMOKE_CREATES_MAX: '5' })
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^ok is refused: (not tried: a client may create 20 at once|429 after)/m)
  }, 60_000)

  test('fails after its retries, and reports the cause', async () => {
    const [without, away, stranger] = await Promise.all([
      smoke(unlimited),
      smoke(unlimited, { SMOKE_URL: 'http://127.0.0.1:9' }),
      smoke(limited, { ADMIN_TOKEN: 'another' }),
    ])
    expect([without.exitStatus, away.exitStatus, stranger.exitStatus]).toEqual([1, 1, 1])
    expect(without.stderr).toMatch(
      /FAILED shortens: an answer 201 lacks x-ratelimit-limit: does the rate limiter answer/,
    )
    expect(away.stderr).toMatch(/FAILED shortens: http:\/\/127\.0\.0\.1:9\/.* does not answer/)
    expect(stranger.stderr).toMatch(/FAILED has codes: GET \/admin\/pools returned 401/)
  }, 60_000)

  test('requires SMOKE_URL', async () => {
    const { exitStatus, stderr } = await runSmoke({})
    expect([exitStatus, stderr]).toEqual([
      2,
      'curtail: SMOKE_URL is required: an http:// or https:// URL\n',
    ])
  }, 30_000)
})
