// The scheduler of connections: a busy connection does not delay others.
import { expect, test } from '@jest/globals'
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
