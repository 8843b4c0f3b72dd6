// Secrets from files: the requirements at the start, and what may change later.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import { createAuthority } from '../../../test/kit/ratelimit/grpc-certificates.ts'
import { parseConfig } from '../../config/config.ts'
import { cacheSettings, planLinkCache } from './cache-settings.ts'
import { planRedis, redisSettings } from './settings.ts'

let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'curtail-secrets-'))
})
afterAll(() => {
  rmSync(dir, { recursive: true })
})

function fileOf(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}

const plan = (env: Record<string, string>) =>
  planRedis(parseConfig(redisSettings, { REDIS_URL: 'h:1', ...env })).main

test('without files, nothing is re-read', () => {
  expect(plan({ REDIS_AUTH: 'a' }).secretFiles).toBeUndefined()
})

test('the files are re-read; a new line at their end is ignored', () => {
  const [auth, sentinel] = [fileOf('auth', 'app:one\n'), fileOf('sentinel', 'two')]
  const env = { REDIS_AUTH_FILE: auth, REDIS_SENTINEL_AUTH_FILE: sentinel }
  const { secretFiles, ...options } = plan(env)
  expect(options).toMatchObject({
    auth: { username: 'app', password: 'one' },
    sentinelAuth: { password: 'two' },
  })
  expect(secretFiles?.paths).toEqual([auth, sentinel])
  fileOf('auth', 'three')
  expect(secretFiles?.read()).toMatchObject({ auth: { password: 'three' } })
})

test('files of certificates are used only with TLS, and do not count as credentials', () => {
  const cert = fileOf('ca', createAuthority('Redis').cert)
  const env = { REDIS_AUTH: 'a', REDIS_TLS_CACERT: cert }
  expect(plan(env).secretFiles).toBeUndefined()
  const { secretFiles } = plan({ ...env, REDIS_TLS: 'true' })
  expect(secretFiles).toMatchObject({ paths: [cert], hasCredentials: false })
  const auth = fileOf('auth', 'one')
  const planned = plan({ REDIS_AUTH_FILE: auth, REDIS_TLS_CACERT: cert }).secretFiles
  expect(planned).toMatchObject({ paths: [auth], hasCredentials: true })
  rmSync(cert)
  expect(planned?.read().auth).toEqual({ password: 'one' })
})

test('invalid certificates are a problem at the start, and when they are re-read', () => {
  const ca = fileOf('ca', createAuthority('Redis').cert)
  const env = { REDIS_TLS: 'true', REDIS_TLS_CACERT: ca }
  const { secretFiles } = plan(env)
  const problem = ['REDIS_TLS_CACERT must contain valid certificates']
  fileOf('ca', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n')
  expect(configProblems(() => secretFiles?.read())).toEqual(problem)
  expect(configProblems(() => plan(env))).toEqual(problem)
})

test('the Redis for limits per second has its own files', () => {
  const [main, second] = [fileOf('main', 'one'), fileOf('second', 'two')]
  const env = { REDIS_URL: 'h:1', REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'i:2' }
  const files = { REDIS_AUTH_FILE: main, REDIS_PERSECOND_AUTH_FILE: second }
  const planned = planRedis(parseConfig(redisSettings, { ...env, ...files }))
  expect([planned.main.secretFiles?.paths, planned.main.auth]).toEqual([
    [main],
    { password: 'one' },
  ])
  rmSync(main) // a fault of one file does not affect the other server
  expect(planned.perSecond?.secretFiles?.read().auth).toEqual({ password: 'two' })
})

test.each([
  ['missing', undefined, 'a readable file'],
  ['empty', '\n', 'a file that is not empty'],
  ['too large', 'x'.repeat(65_537), 'a file of at most 65536 bytes'],
])('at the start, a file that is %s is a problem', (name, text, allowed) => {
  const path = text === undefined ? join(dir, 'none') : fileOf(name, text)
  expect(configProblems(() => plan({ REDIS_AUTH_FILE: path }))).toEqual([
    `REDIS_AUTH_FILE must name ${allowed}: current value is ${path}`,
  ])
})

test('a secret of 64 KiB is read, and only a new line at its end is removed', () => {
  const longest = `a\n${'b'.repeat(65_533)}`
  const path = fileOf('longest', `${longest}\n`)
  expect(plan({ REDIS_AUTH_FILE: path }).auth).toEqual({ password: longest })
})

test('a folder is rejected, and so is a secret that is set both as a value and as a file', () => {
  expect(configProblems(() => plan({ REDIS_AUTH_FILE: dir }))).toEqual([
    `REDIS_AUTH_FILE must name a readable file: current value is ${dir}`,
  ])
  const both = { REDIS_AUTH: 'a', REDIS_AUTH_FILE: fileOf('both', 'b') }
  expect(configProblems(() => plan(both))).toEqual([
    'REDIS_AUTH and REDIS_AUTH_FILE are both set: remove one',
  ])
})

test.each(['redis://:two@g:1', 'redis://:two@h:1/2', 'rediss://:two@h:1'])(
  'an address in a file must stay the same: %s',
  (changed) => {
    const path = fileOf('url', 'redis://:one@h:1')
    const opened = [
      planRedis(parseConfig(redisSettings, { REDIS_URL_FILE: path })).main,
      planLinkCache(parseConfig(cacheSettings, { REDIS_URL_FILE: path })),
    ]
    fileOf('url', 'redis://:two@h:1')
    for (const { secretFiles } of opened) {
      expect(secretFiles?.read().auth).toEqual({ password: 'two' })
    }
    fileOf('url', changed)
    for (const { secretFiles } of opened) {
      expect(configProblems(() => secretFiles?.read())).toEqual([
        'REDIS_URL_FILE contains another address: it is used after a restart',
      ])
    }
    fileOf('url', 'nonsense')
    for (const { secretFiles } of opened) {
      expect(configProblems(() => secretFiles?.read())).toEqual([
        expect.stringMatching(
          /^the file of REDIS_URL_FILE must contain .*: current value is hidden$/,
        ),
      ])
    }
  },
)
