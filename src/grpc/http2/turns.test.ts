// Turns of the event loop: who has much to do does not delay who has little.
import { expect, test } from '@jest/globals'
import { Turns, type Worker } from './turns.ts'

/** Work of so many steps of 1 ms, on a clock of its own. */
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

test('work is done by slices, addresses and their connections in turns', async () => {
  const { turns, worker, done, turn } = openTurns()
  const took = ['a1', 'a2', 'a3'].map((name) => {
    const one = worker(name, 'a', 3)
    const isDone = turns.run(one)
    if (!isDone) turns.defer(one)
    return isDone
  })
  expect(took).toEqual([true, false, false]) // others of its address wait
  expect(done).toEqual(['a1'])
  turns.defer(worker('b', 'b', 1))
  await turn()
  expect(done.slice(1)).toEqual(['a1', 'b']) // the turn has no more time
  await turn()
  expect(done.slice(3)).toEqual(['a2', 'a3'])
  for (let i = 0; i < 3; i += 1) await turn()
  expect(done).toHaveLength(10)
})

test('a turn has a bound whatever the number of addresses', async () => {
  const { turns, worker, done, turn } = openTurns()
  const took = ['a', 'b', 'c'].map((name) => turns.run(worker(name, name, 1)))
  expect([took, done]).toEqual([
    [true, true, false],
    ['a', 'b'],
  ])
  await turn()
  expect(turns.run(worker('d', 'd', 1))).toBe(true)
})

test('who comes in a new turn need not wait for those before', async () => {
  const { turns, worker, done, turn } = openTurns()
  turns.run(worker('a', 'a', 100))
  await turn()
  turns.run(worker('b', 'b', 1))
  expect(done.at(-1)).toBe('b')
})
