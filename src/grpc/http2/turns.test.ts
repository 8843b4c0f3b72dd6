// The scheduler of connections: a busy connection does not delay others.
import { expect, test } from '@jest/globals'
import { Turns, type Worker } from './turns.ts'

/** Workers with steps of 1 ms on a fake clock. */
function openTurns() {
  let ms = 0
  const done: string[] = []
  const turns = new Turns(() => ms)
  const worker = (name: string, address: string, steps: number): Worker => {
    let left = steps
    return {
      address,
      work(untilMs) {
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
  return { turns, worker, done, turn: () => new Promise((resolve) => setImmediate(resolve)) }
}

test('work runs in slices, by round robin over addresses and their connections', async () => {
  const { turns, worker, done, turn } = openTurns()
  const results = ['a1', 'a2', 'a3'].map((name) => {
    const one = worker(name, 'a', 3)
    const isDone = turns.run(one)
    if (!isDone) turns.defer(one)
    return isDone
  })
  expect(results).toEqual([true, false, false]) // others of the address wait
  expect(done).toEqual(['a1'])
  turns.defer(worker('b', 'b', 1))
  await turn()
  expect(done.slice(1)).toEqual(['a1', 'b']) // the turn has no time left
  await turn()
  expect(done.slice(3)).toEqual(['a2', 'a3'])
  for (let i = 0; i < 3; i += 1) await turn()
  expect(done).toHaveLength(10)
})

test('the duration of a turn is bounded for any number of addresses', async () => {
  const { turns, worker, done, turn } = openTurns()
  const results = ['a', 'b', 'c'].map((name) => turns.run(worker(name, name, 1)))
  expect([results, done]).toEqual([
    [true, true, false],
    ['a', 'b'],
  ])
  await turn()
  expect(turns.run(worker('d', 'd', 1))).toBe(true)
})

test('a new worker in a new turn does not wait for earlier ones', async () => {
  const { turns, worker, done, turn } = openTurns()
  turns.run(worker('a', 'a', 100))
  await turn()
  turns.run(worker('b', 'b', 1))
  expect(done.at(-1)).toBe('b')
})
