// A version that arrives unchanged after its rejection is delayed more and more, and is parsed only
// if its rejection was no fault of the version.
import { expect, test } from '@jest/globals'
import { createRejectedVersion } from './rejected-version.ts'

const never = new AbortController().signal

function open() {
  const waits: number[] = []
  const wait = (ms: number) => {
    waits.push(ms)
    return Promise.resolve()
  }
  return { waits, version: createRejectedVersion(wait) }
}

test('the delay doubles from 1 s to 60 s', async () => {
  const { waits, version } = open()
  version.set('v2', { reason: 'bad', isRetryable: false })
  for (let n = 0; n < 9; n += 1) expect(await version.recall('v2', never)).toBe('bad')
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
})

test('another version, or an accepted one, is not delayed', async () => {
  const { waits, version } = open()
  version.set('v2', { reason: 'bad', isRetryable: false })
  expect(await version.recall('v3', never)).toBeUndefined()
  version.clear()
  expect(await version.recall('v2', never)).toBeUndefined()
  expect(waits).toEqual([])
})

test('an error of the parser is retried after the same delay', async () => {
  const { waits, version } = open()
  for (let n = 0; n < 3; n += 1) {
    version.set('v2', { reason: 'too slow', isRetryable: true })
    expect(await version.recall('v2', never)).toBeUndefined()
  }
  expect(waits).toEqual([1000, 2000, 4000])
  expect(await version.recall('v2', AbortSignal.abort())).toBe('too slow')
})

test('an abort ends the delay', async () => {
  const version = createRejectedVersion()
  version.set('v2', { reason: 'bad', isRetryable: false })
  expect(await version.recall('v2', AbortSignal.abort())).toBe('bad')
})
