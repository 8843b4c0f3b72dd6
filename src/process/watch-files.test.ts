// When a watch calls `onChange`: after changes, on `reload`, and for retries; and that listings of
// a disk that hangs do not accumulate. test/component/ratelimit/rule-reload.test.ts watches files.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { waitFor } from '../../test/kit/wait-for.ts'
import { type FileWatch, type WatchOptions, watchFiles } from './watch-files.ts'

const POLL_MS = 2000
const MINUTE_MS = 60_000

let state: string
/** The times of the calls of `onChange`. */
let calls: number[]
let outcomes: (string | undefined)[]
let scans: number
let errors: unknown[]
let watch: FileWatch | undefined

beforeEach(() => {
  jest.useFakeTimers({ now: 0 })
  state = 'one'
  calls = []
  outcomes = []
  scans = 0
  errors = []
})
afterEach(async () => {
  jest.useRealTimers()
  await watch?.stop()
})

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms)
/** Waits in real time: the pause until files are stable has no fake timer. */
const expectCalls = (count: number) => waitFor('the calls', () => calls.length === count)

/** Starts a watch, and waits for its first call. */
async function start(options: Partial<WatchOptions> = {}) {
  const { scan = () => Promise.resolve({ state, folders: [] }), ...others } = options
  watch = watchFiles({
    scan: () => {
      scans++
      return scan()
    },
    onChange: () => {
      calls.push(Date.now())
      return Promise.resolve(outcomes.shift())
    },
    onError: (error) => errors.push(error),
    settleMs: 0,
    ...others,
  })
  await expectCalls(1)
  return watch
}

test('onChange is called for each change, and on reload without a change', async () => {
  const { reload } = await start()
  await advance(MINUTE_MS)
  expect(calls).toHaveLength(1)
  state = 'two'
  await advance(POLL_MS)
  await expectCalls(2)
  reload()
  await advance(0)
  expect(calls).toHaveLength(3)
  await advance(MINUTE_MS)
  expect(calls).toHaveLength(3)
})

test('a reload during a call starts one call directly after it, even before a retry', async () => {
  const first = Promise.withResolvers<string>()
  const onChange = () => {
    calls.push(Date.now())
    return calls.length === 1 ? first.promise : Promise.resolve()
  }
  const { reload } = await start({ onChange })
  reload()
  reload()
  await advance(MINUTE_MS)
  expect(calls).toHaveLength(1)
  first.resolve('retry')
  await advance(1)
  expect(calls).toHaveLength(2)
  await advance(MINUTE_MS)
  expect(calls).toHaveLength(2)
})

test('after `retry`, onChange is called at the next poll, then after doubled delays', async () => {
  outcomes = Array<string>(8).fill('retry')
  await start()
  await advance(10 * MINUTE_MS)
  const delays = calls.slice(1).map((ms, at) => (ms - (calls[at] ?? 0)) / 1000)
  expect(delays).toEqual([2, 4, 8, 16, 32, 60, 60, 60]) // the last call succeeds
})

test('a change, or a reload, does not wait for a retry, and a reload is retried too', async () => {
  outcomes = Array<string>(6).fill('retry')
  const { reload } = await start()
  await advance(29_000)
  expect(calls).toHaveLength(4)
  state = 'two'
  await advance(POLL_MS)
  await expectCalls(5)
  await advance(POLL_MS)
  expect(calls).toHaveLength(6)
  await advance(MINUTE_MS)
  expect(calls).toHaveLength(7)
  outcomes = ['retry']
  reload()
  await advance(0)
  expect(calls).toHaveLength(8)
  await advance(POLL_MS)
  expect(calls).toHaveLength(9)
})

test('a listing that hangs is reported once, and no other access starts', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  let isHanging = false
  await start({
    async scan() {
      if (isHanging) await promise
      return { state, folders: [] }
    },
  })
  isHanging = true
  const scansBefore = scans
  for (let seconds = 0; seconds < 300; seconds++) {
    await advance(1000)
    await sleep(1)
  }
  expect([scans, calls.length]).toEqual([scansBefore + 1, 1])
  expect(errors).toEqual([new Error('listing the files took too long')])
  isHanging = false
  state = 'two'
  resolve(undefined)
  await advance(POLL_MS)
  await expectCalls(2)
  expect(errors).toHaveLength(1)
})
