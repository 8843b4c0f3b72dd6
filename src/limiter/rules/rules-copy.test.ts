// A copy is written in the background, one version at a time; versions that the newest one replaces
// are not written. An access to a disk that hangs is aborted, and logged.
import { afterEach, expect, jest, test } from '@jest/globals'
import { boundCopy, writeInBackground } from './rules-copy.ts'

afterEach(() => {
  jest.useRealTimers()
})

test('an access that takes longer than 10 s is logged, and does not delay the caller', async () => {
  jest.useFakeTimers()
  const started: string[] = []
  const hung = (access: string) => () => {
    started.push(access)
    return new Promise<never>(() => undefined)
  }
  const logged: unknown[] = []
  const copy = boundCopy<string>(
    { read: hung('read'), write: hung('write') },
    { warn: (...line: unknown[]) => logged.push(line) },
  )
  const reading = copy.read()
  await jest.advanceTimersByTimeAsync(10_000)
  expect(await reading).toBeUndefined()
  const writing = copy.write('v1')
  await jest.advanceTimersByTimeAsync(10_000)
  await writing
  expect(started).toEqual(['read']) // no further access until it has completed
  const timeoutOf = (access: string) => {
    const message = `${access} the copy of the rules took longer than 10000 ms`
    return { err: expect.objectContaining({ message }) }
  }
  expect(logged).toEqual([
    [timeoutOf('reading'), 'cannot read the copy of the rules'],
    [timeoutOf('writing'), 'cannot write the copy of the rules'],
  ])
})

test('one write at a time, and only the newest waits', async () => {
  const writes: string[] = []
  const complete: (() => void)[] = []
  const copy = writeInBackground<string>({
    read: () => Promise.resolve(undefined),
    write: (rules) =>
      new Promise((resolve) => {
        writes.push(rules)
        complete.push(resolve)
      }),
  })
  await copy.settle()
  for (const rules of ['v1', 'v2', 'v3']) copy.write(rules)
  expect(writes).toEqual(['v1'])
  complete[0]?.()
  await new Promise(setImmediate)
  expect(writes).toEqual(['v1', 'v3'])
  complete[1]?.()
  await copy.settle()
  copy.write('v4')
  complete[2]?.()
  await copy.settle()
  expect(writes).toEqual(['v1', 'v3', 'v4'])
})
