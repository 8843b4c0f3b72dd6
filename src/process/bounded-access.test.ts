// Accesses to a disk that may hang: each has a deadline, and hanging ones do not accumulate.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { createBoundedAccess } from './bounded-access.ts'

const MS_MAX = 100
const timeoutError = () => new Error('timeout')

let started: string[]
beforeEach(() => {
  jest.useFakeTimers()
  started = []
})
afterEach(() => {
  jest.useRealTimers()
})

/** An access that completes when the test calls `complete`. */
function hanging(name: string) {
  const { promise, resolve } = Promise.withResolvers<string>()
  const access = () => {
    started.push(name)
    return promise
  }
  const complete = () => {
    resolve(name)
  }
  return { access, complete }
}

test('the result or the error of an access is passed on, and the next one starts', async () => {
  const access = createBoundedAccess(MS_MAX)
  expect(await access(() => Promise.resolve('read'), timeoutError)).toBe('read')
  const failing = access(() => Promise.reject(new Error('own')), timeoutError)
  await expect(failing).rejects.toThrow('own')
  expect(await access(() => Promise.resolve('read'), timeoutError)).toBe('read')
  expect(jest.getTimerCount()).toBe(0)
})

test('while an access hangs, no other access starts, and all calls time out', async () => {
  const access = createBoundedAccess(MS_MAX)
  const [first, next] = [hanging('first'), hanging('next')]
  for (let attempt = 0; attempt < 20; attempt++) {
    const { access: run } = attempt === 0 ? first : next
    const timedOut = expect(access(run, timeoutError)).rejects.toThrow('timeout')
    await jest.advanceTimersByTimeAsync(MS_MAX)
    await timedOut
  }
  expect(started).toEqual(['first'])
})

test('calls that wait for a hanging access run one after the other', async () => {
  const access = createBoundedAccess(MS_MAX)
  const accesses = ['first', 'second', 'third'].map(hanging)
  const results = accesses.map(({ access: run }) => access(run, timeoutError))
  for (const [at, { complete }] of accesses.entries()) {
    await jest.advanceTimersByTimeAsync(1)
    expect(started).toHaveLength(at + 1)
    complete()
  }
  expect(await Promise.all(results)).toEqual(['first', 'second', 'third'])
})
