// Pauses that end early, and deadlines that leave nothing behind.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { pause, within } from './deadline.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const late = () => new Error('late')

test('within() gives what the promise gives, and clears its timer', async () => {
  expect(await within(100, Promise.resolve('value'), late)).toBe('value')
  await expect(within(100, Promise.reject(new Error('own')), late)).rejects.toThrow('own')
  expect(jest.getTimerCount()).toBe(0)
})

test('within() throws what late() makes once the time has passed', async () => {
  const waiting = within(100, new Promise(() => undefined), late)
  const thrown = expect(waiting).rejects.toThrow('late')
  await jest.advanceTimersByTimeAsync(100)
  await thrown
})

test('a promise that fails after its deadline fails unheard', async () => {
  const failing = new Promise<never>((_, reject) => {
    setTimeout(() => {
      reject(new Error('own'))
    }, 200)
  })
  const thrown = expect(within(100, failing, late)).rejects.toThrow('late')
  await jest.advanceTimersByTimeAsync(300)
  await thrown
})

test('pause() ends with its signal, at once where that has been given before', async () => {
  jest.useRealTimers()
  const ending = new AbortController()
  const waiting = pause(3_600_000, ending.signal)
  ending.abort()
  await waiting
  await pause(3_600_000, ending.signal)
  await pause(0)
})
