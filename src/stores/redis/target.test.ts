// The values of REDIS_URL for each deployment type.
import { describe, expect, test } from '@jest/globals'
import { parseTarget, type RedisType, type SocketType } from './target.ts'

const parse = (url: string, type: RedisType = 'SINGLE', socketType?: SocketType) =>
  parseTarget(url, { type, socketType })

describe('a standalone Redis', () => {
  const plain = { hasTls: false, auth: undefined, database: 0 }
  test.each([
    ['redis:6379', { target: { kind: 'single', host: 'redis', port: 6379 }, ...plain }],
    ['[::1]:7000', { target: { kind: 'single', host: '::1', port: 7000 }, ...plain }],
    ['/run/r.sock', { target: { kind: 'single', path: '/run/r.sock' }, ...plain }],
    ['redis://h', { target: { kind: 'single', host: 'h', port: 6379 }, ...plain }],
    [
      'rediss://u:p%3Aw@h:1/2',
      {
        target: { kind: 'single', host: 'h', port: 1 },
        hasTls: true,
        auth: 'u:p:w',
        database: 2,
      },
    ],
    ['redis://:p@h', { target: { kind: 'single', host: 'h', port: 6379 }, ...plain, auth: 'p' }],
  ])('%s', (url, expected) => {
    expect(parse(url)).toEqual(expected)
  })

  test.each(['', 'redis', 'h:', 'h:0', 'h:65536', 'h:1,i:2', 'http://h', 'redis://', 'a b:1'])(
    'rejects %j',
    (url) => {
      expect(parse(url)).toBeUndefined()
    },
  )

  test.each(['redis://h/x', 'redis://h/70000', 'redis://h?db=1', 'redis://u:%zz@h', 'u:p@h:1'])(
    'rejects the URL %j',
    (url) => {
      expect(parse(url)).toBeUndefined()
    },
  )

  test('the address must match a configured socket type', () => {
    expect(parse('h:1', 'SINGLE', 'unix')).toBeUndefined()
    expect(parse('/run/r.sock', 'SINGLE', 'tcp')).toBeUndefined()
    expect(parse('h:1', 'SINGLE', 'tcp')).toBeDefined()
    expect(parse('/run/r.sock', 'SINGLE', 'unix')).toBeDefined()
  })
})

describe('several addresses', () => {
  const two = [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ]

  test('of sentinels follow the name of their master', () => {
    const target = { kind: 'sentinel', masterName: 'mymaster', sentinels: two }
    expect(parse('mymaster,a:1, b:2', 'SENTINEL')).toMatchObject({ target })
    expect(parse('a:1,b:2', 'SENTINEL')).toBeUndefined()
    expect(parse('mymaster', 'SENTINEL')).toBeUndefined()
  })

  test('of Cluster nodes differ only in host and port', () => {
    expect(parse('a:1,b:2', 'CLUSTER')).toMatchObject({ target: { kind: 'cluster', nodes: two } })
    expect(parse('rediss://:p@a:1,rediss://:p@b:2', 'CLUSTER')).toMatchObject({
      target: { kind: 'cluster', nodes: two },
      hasTls: true,
      auth: 'p',
    })
    expect(parse('rediss://a:1,b:2', 'CLUSTER')).toBeUndefined()
    expect(parse('redis://a:1/1', 'CLUSTER')).toBeUndefined()
    expect(parse('a:1,', 'CLUSTER')).toBeUndefined()
  })
})
