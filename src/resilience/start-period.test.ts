// The levels of failures to reach a dependency after the start.
import { expect, jest, test } from '@jest/globals'
import { createStartPeriod, isUnreachable } from './start-period.ts'

test('an unreachable dependency is no warning for a minute', () => {
  const now = jest.spyOn(performance, 'now').mockReturnValue(5000)
  const start = createStartPeriod()
  now.mockReturnValue(64_999)
  expect(start.levelOf(true)).toBe('info')
  now.mockReturnValue(65_000)
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
  [false, { code: 'ECONNRESET', message: 'Client network socket disconnected' }],
  [false, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', message: 'self-signed certificate' }],
  [false, { message: 'WRONGPASS invalid username-password pair' }],
])('a server is unreachable: %s for %j', (expected, error) => {
  expect(isUnreachable(error)).toBe(expected)
})
