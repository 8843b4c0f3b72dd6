// The contract of a counter store: the reset of a counter.
import { expect, test } from '@jest/globals'
import type { Algorithm } from '../../src/limits/algorithm.ts'
import { capacityOf, fill, newCount, type Use } from './counter-use.ts'

/** Defines the tests of one algorithm. */
export function defineReset(algorithm: Algorithm, use: Use): void {
  const capacity = capacityOf(algorithm)

  test('a reset counter admits its whole limit; other counters keep their hits', async () => {
    use.resetClock()
    const [count, other] = [newCount(algorithm), newCount(algorithm)]
    for (const each of [count, other]) await fill(use, each)
    await use.reset([count])
    const whole = { admitted: true, remaining: capacity }
    expect(await use.one({ ...count, cost: 0 })).toMatchObject(whole)
    await use.reset([count, newCount(algorithm)])
    expect(await use.one({ ...count, cost: 0 })).toMatchObject(whole)
    expect(await use.one({ ...other, cost: 0 })).toMatchObject({ remaining: 0 })
    await use.reset([])
  })
}
