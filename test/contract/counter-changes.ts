// The contract of a counter store: what an operator changes, a limit or a counter.
import { expect, test } from '@jest/globals'
import type { Algorithm } from '../../src/limits/algorithm.ts'
import { capacityOf, fill, newUpdate, type Use, WINDOW_US } from './counter-use.ts'

/** Defines the tests of one algorithm. */
export function defineChanges(algorithm: Algorithm, use: Use): void {
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

  test('a raised limit admits more hits immediately, also after denied hits', async () => {
    use.resetClock()
    const update = newUpdate(algorithm, { requests: 7, burst: 7 })
    for (let hit = 0; hit < 20; hit++) await use.one(update)
    const { retryAfterUs } = await use.one(update)
    const raised = { ...update, limit: { ...update.limit, requests: 60, burst: 60 } }
    const decision = await use.one(raised)
    expect(decision.retryAfterUs).toBeLessThanOrEqual(retryAfterUs)
    const more = capacityOf(algorithm, raised) - capacityOf(algorithm, update)
    if (more > 0) expect(decision).toMatchObject({ admitted: true, remaining: more - 1 })
  })

  test('a lowered limit admits hits within two windows', async () => {
    use.resetClock()
    const burst = algorithm.takesBurst ? 70 : 7
    const update = newUpdate(algorithm, { requests: 7, burst })
    for (let hit = 0; hit < burst; hit++) await use.one(update)
    const lowered = { ...update, limit: { ...update.limit, requests: 1, burst: 1 } }
    expect(await use.one(lowered)).toMatchObject({ admitted: false })
    use.wait(2 * WINDOW_US)
    expect(await use.one(lowered)).toMatchObject({ admitted: true })
  })
}
