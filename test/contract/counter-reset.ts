// The contract of a counter store: the reset of a counter.
import { expect, test } from '@jest/globals'
import type { Algorithm } from '../../src/limits/algorithm.ts'
import { capacityOf, fill, newUpdate, type Use } from './counter-use.ts'

/** Defines the tests of one algorithm. */
export function defineReset(algorithm: Algorithm, use: Use): void {
  const capacity = capacityOf(algorithm)

  test('a reset counter admits its whole limit; other counters keep their hits', async () => {
    use.resetClock()
    const [update, other] = [newUpdate(algorithm), newUpdate(algorithm)]
    for (const each of [update, other]) await fill(use, each)
    await use.reset([update])
    const whole = { admitted: true, remaining: capacity }
    expect(await use.one({ ...update, hits: 0 })).toMatchObject(whole)
    await use.reset([update, newUpdate(algorithm)])
    expect(await use.one({ ...update, hits: 0 })).toMatchObject(whole)
    expect(await use.one({ ...other, hits: 0 })).toMatchObject({ remaining: 0 })
    await use.reset([])
  })
}
