// The scheduler of connections: a busy connection does not delay others.
import { expect, jest, test } from '@jest/globals'
import { RoundRobinScheduler, type ScheduledConnection } from './round-robin-scheduler.ts'

/** Connections with steps of 1 ms on a fake clock. */
function openScheduler() {
  let ms = 0
  const done: string[] = []
  const scheduler = new RoundRobinScheduler(() => ms)
  const connection = (name: string, address: string, steps: number): ScheduledConnection => {
    let left = steps
    return {
      address,
      runSlice(untilMs) {
        while (left > 0) {
          left -= 1
          ms += 1
          done.push(name)
          if (ms >= untilMs) return left > 0
        }
        return false
      },
    }
  }
  return {
    scheduler,
    connection,
    done,
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

test('connections run in slices, by round robin over addresses and their connections', async () => {
  const { scheduler, connection, done, turn } = openScheduler()
  const results = ['a1', 'a2', 'a3'].map((name) => {
    const one = connection(name, 'a', 3)
    const isDone = scheduler.tryRun(one)
    if (!isDone) scheduler.defer(one)
    return isDone
  })
  expect(results).toEqual([true, false, false]) // others of the address wait
  expect(done).toEqual(['a1'])
  scheduler.defer(connection('b', 'b', 1))
  await turn()
  expect(done.slice(1)).toEqual(['a1', 'b']) // the turn has no time left
  await turn()
  expect(done.slice(3)).toEqual(['a2', 'a3'])
  for (let i = 0; i < 3; i += 1) await turn()
  expect(done).toHaveLength(10)
})

test('the duration of a turn is bounded for any number of addresses', async () => {
  const { scheduler, connection, done, turn } = openScheduler()
  const results = ['a', 'b', 'c'].map((name) => scheduler.tryRun(connection(name, name, 1)))
  expect([results, done]).toEqual([
    [true, true, false],
    ['a', 'b'],
  ])
  await turn()
  expect(scheduler.tryRun(connection('d', 'd', 1))).toBe(true)
})

test('a new connection in a new turn does not wait for earlier ones', async () => {
  const { scheduler, connection, done, turn } = openScheduler()
  scheduler.tryRun(connection('a', 'a', 100))
  await turn()
  scheduler.tryRun(connection('b', 'b', 1))
  expect(done.at(-1)).toBe('b')
})

/** A connection that runs for `ms` each time and has more input `times` times. */
function recorded(clock: { ms: number }, ms: number, times = 0) {
  const slices: number[] = []
  let left = times
  const connection: ScheduledConnection = {
    address: `${ms} ms`,
    runSlice(untilMs) {
      slices.push(untilMs - clock.ms)
      clock.ms += ms
      left -= 1
      return left >= 0
    },
  }
  return { connection, slices }
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('each slice has 1 ms from its own start', async () => {
  const clock = { ms: 5 }
  const scheduler = new RoundRobinScheduler(() => clock.ms)
  const { connection, slices } = recorded(clock, 0.5, 5)
  expect(scheduler.tryRun(connection)).toBe(true)
  await nextTurn()
  expect([slices, clock.ms]).toEqual([[1, 1, 1, 1, 1], 7.5]) // 0.5 ms, then a turn of 2 ms
  await nextTurn()
  expect(slices).toHaveLength(6)
})

test('the poll and the turn have 2 ms each, even after a slice that took longer', async () => {
  const clock = { ms: 0 }
  const scheduler = new RoundRobinScheduler(() => clock.ms)
  const [long, other, quick] = [recorded(clock, 7, 1), recorded(clock, 1), recorded(clock, 0)]
  expect(scheduler.tryRun(long.connection)).toBe(true)
  expect(scheduler.tryRun(other.connection)).toBe(false)
  scheduler.defer(other.connection)
  await nextTurn()
  expect([long.slices.length, other.slices.length]).toEqual([2, 0])
  expect(scheduler.tryRun(quick.connection)).toBe(true) // in a new poll
  await nextTurn()
  expect(other.slices).toEqual([1])
})

test('a connection waits only for others of its address', () => {
  const clock = { ms: 0 }
  const scheduler = new RoundRobinScheduler(() => clock.ms)
  const { connection } = recorded(clock, 0)
  scheduler.defer({ ...connection, address: 'a' })
  expect(scheduler.tryRun({ ...connection, address: 'b' })).toBe(true)
  expect(scheduler.tryRun({ ...connection, address: 'a' })).toBe(false)
})

test('a turn is scheduled only once, and none if no connection waits', async () => {
  const clock = { ms: 0 }
  const schedule = jest.spyOn(globalThis, 'setImmediate')
  try {
    const scheduler = new RoundRobinScheduler(() => clock.ms)
    const { connection, slices } = recorded(clock, 2, 2)
    scheduler.defer(connection)
    scheduler.tryRun(recorded(clock, 0).connection)
    const [turn] = schedule.mock.calls[0] ?? []
    const turns = () => schedule.mock.calls.filter(([call]) => call === turn).length
    expect(turns()).toBe(1)
    for (let i = 0; i < 6; i += 1) await nextTurn()
    expect([turns(), slices.length]).toEqual([3, 3])
  } finally {
    schedule.mockRestore()
  }
})
