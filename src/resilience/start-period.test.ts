// The levels of failures to reach a dependency after the start.
import { expect, jest, test } from '@jest/globals'
import { createStartPeriod, isUnreachable, SLOW_START_MS_MAX } from './start-period.ts'

test.each([
  ['a minute', undefined, 60_000],
  ['5 minutes if it may start slowly', SLOW_START_MS_MAX, 300_000],
])('an unreachable dependency causes no warning for %s', (_, given, endMs) => {
  const now = jest.spyOn(performance, 'now').mockReturnValue(5000)
  const start = createStartPeriod(given)
  now.mockReturnValue(5000 + endMs - 1)
  expect(start.levelOf(true)).toBe('info')
  now.mockReturnValue(5000 + endMs)
  expect(start.levelOf(true)).toBe('warn')
  now.mockRestore()
})

test('after the first success, or another failure, each failure is a warning', () => {
  const [reached, failed] = [createStartPeriod(), createStartPeriod()]
  reached.end()
  expect([failed.levelOf(false), failed.levelOf(true), reached.levelOf(true)]).toEqual(
    Array(3).fill('warn'),
  )
})

test.each([
  [true, { code: 'ECONNREFUSED', message: '' }],
  [true, { code: 'EAI_FAIL', message: 'getaddrinfo EAI_FAIL redis' }],
  [true, { message: 'Last error: Error: connect ETIMEDOUT 10.0.0.1:18000' }],
  [true, { code: 'ENOENT', message: 'connect ENOENT /run/redis.sock' }],
  [false, { code: 'ENOENT', message: "ENOENT: no such file or directory, open '/tls/ca.crt'" }],
  [false, { code: 'ENOENT', message: "ENOENT: no such file, open '/tls/connect ENOENT'" }],
  [false, { code: 'ECONNRESET', message: 'Client network socket disconnected' }],
  [false, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', message: 'self-signed certificate' }],
  [false, { message: 'WRONGPASS invalid username-password pair' }],
])('isUnreachable() returns %s for %j', (expected, error) => {
  expect(isUnreachable(error)).toBe(expected)
})
