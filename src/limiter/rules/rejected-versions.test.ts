// Content that arrives after it was rejected is delayed, each time for longer, and is parsed only
// if the content was not the cause of its rejection.
import { expect, test } from '@jest/globals'
import { versionFault } from './version-parser.ts'
import { createRejectedVersions } from './rejected-versions.ts'

const never = new AbortController().signal
const bad = { faults: [versionFault('bad')], isRetryable: false }

function open() {
  const waits: number[] = []
  let now = 0
  const wait = (ms: number) => {
    waits.push(ms)
    now += ms
    return Promise.resolve()
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { waits, pass, versions: createRejectedVersions({ wait, nowMs: () => now }) }
}

test('the delay doubles from 1 s to 60 s', async () => {
  const { waits, versions } = open()
  versions.add('a', bad)
  for (let n = 0; n < 9; n += 1) expect(await versions.recall('a', never)).toBe(bad)
  expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
})

test('other content is not delayed; alternating bad versions have their own delays', async () => {
  const { waits, versions } = open()
  versions.add('a', bad)
  expect(await versions.recall('b', never)).toBeUndefined()
  versions.add('b', bad)
  for (const digest of ['a', 'b', 'a', 'b']) {
    expect(await versions.recall(digest, never)).toBe(bad)
  }
  expect(waits).toEqual([1000, 1000, 2000, 2000])
})

test('content that has not arrived for a minute is rejected without a delay', async () => {
  const { waits, pass, versions } = open()
  versions.add('a', bad)
  await versions.recall('a', never)
  pass(59_999)
  await versions.recall('a', never)
  expect(waits).toEqual([1000, 2000])
  pass(60_000)
  expect(await versions.recall('a', never)).toBe(bad)
  expect(waits).toEqual([1000, 2000])
  await versions.recall('a', never)
  expect(waits).toEqual([1000, 2000, 1000])
})

test('an error of the parser is retried after the same delay', async () => {
  const { waits, versions } = open()
  const tooSlow = { faults: [versionFault('too slow')], isRetryable: true }
  for (let n = 0; n < 3; n += 1) {
    versions.add('a', tooSlow)
    expect(await versions.recall('a', never)).toBeUndefined()
  }
  expect(waits).toEqual([1000, 2000, 4000])
  expect(await versions.recall('a', AbortSignal.abort())).toBe(tooSlow)
})

test('only the last four versions are kept', async () => {
  const { versions } = open()
  for (const digest of ['a', 'b', 'c', 'd', 'a', 'e']) versions.add(digest, bad)
  expect(await versions.recall('b', never)).toBeUndefined()
  for (const digest of ['a', 'c', 'd', 'e']) {
    expect(await versions.recall(digest, never)).toBe(bad)
  }
})

test('an abort ends the delay', async () => {
  const versions = createRejectedVersions()
  versions.add('a', bad)
  expect(await versions.recall('a', AbortSignal.abort())).toBe(bad)
})
