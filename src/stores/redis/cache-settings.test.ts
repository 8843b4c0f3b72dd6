// The values of the link cache's REDIS_URL.
import { expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import { parseConfig } from '../../config/config.ts'
import { cacheDependentSettings, cacheSettings, planLinkCache } from './cache-settings.ts'

const plan = (env: Record<string, string>) => planLinkCache(parseConfig(cacheSettings, env))

const two = [
  { host: 'a', port: 1 },
  { host: 'b', port: 2 },
]

test.each([
  ['redis://h', { target: { kind: 'single', host: 'h', port: 6379 }, database: 0 }],
  [
    'redis://u:p%3Aw@h:1/2',
    {
      target: { kind: 'single', host: 'h', port: 1 },
      database: 2,
      auth: { username: 'u', password: 'p:w' },
    },
  ],
  ['rediss://:p@h', { tls: { isHostChecked: true }, auth: { password: 'p' } }],
  [
    'redis+sentinel://a:1,b:2/main',
    { target: { kind: 'sentinel', masterName: 'main', sentinels: two }, database: 0 },
  ],
  [
    'rediss+sentinel://u:p@a:1,b:2/main/3',
    {
      target: { kind: 'sentinel', masterName: 'main', sentinels: two },
      database: 3,
      auth: { username: 'u', password: 'p' },
      tls: { isHostChecked: true },
    },
  ],
  ['redis+cluster://a:1,b:2', { target: { kind: 'cluster', nodes: two }, tls: undefined }],
  [
    'rediss+cluster://:p@a:1,b:2',
    { target: { kind: 'cluster', nodes: two }, auth: { password: 'p' } },
  ],
])('%s', (url, expected) => {
  expect(plan({ REDIS_URL: url })).toMatchObject(expected)
})

test.each([
  'h:6379',
  'http://h',
  '/run/redis.sock',
  'redis://',
  'redis://h/x',
  'redis://a:1,b:2',
  'redis+sentinel://a:1,b:2',
  'redis+sentinel://a:1/main/0/1',
  'redis+sentinel://a:1/main/x',
  'redis+cluster://a:1,b:2/1',
  'redis+cluster://a:1,',
  'redis+other://a:1',
])('%s is rejected and not echoed', (url) => {
  expect(configProblems(() => plan({ REDIS_URL: url }))).toEqual([
    expect.stringMatching(/^REDIS_URL must be redis:\/\/.*: current value is hidden$/),
  ])
})

test('REDIS_URL is required, and files must exist', () => {
  expect(() => plan({})).toThrow('REDIS_URL is required: redis://')
  const files = { REDIS_URL: 'rediss://h', REDIS_TLS_CACERT: '/nowhere' }
  expect(() => plan(files)).toThrow('REDIS_TLS_CACERT must name a readable file in PEM')
})

test('an unreadable REDIS_URL_FILE is one problem', () => {
  expect(() => plan({ REDIS_URL_FILE: '/nowhere' })).toThrow(
    /^REDIS_URL_FILE must name a readable file: current value is \/nowhere$/,
  )
})

test('a client certificate requires its key', () => {
  const env = { REDIS_URL: 'redis://h', REDIS_TLS_CLIENT_CERT: '/nowhere' }
  expect(() => parseConfig(cacheSettings, env, cacheDependentSettings)).toThrow(
    'REDIS_TLS_CLIENT_KEY (a file) is required if REDIS_TLS_CLIENT_CERT is set',
  )
})
