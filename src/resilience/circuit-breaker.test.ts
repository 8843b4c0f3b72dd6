// The calls of one dependency: what a caller receives, when the circuit opens, and how it closes.
// Deadlines use a fake clock; the pauses between probes, of 100 ms, are real.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { waitFor } from '../../test/kit/wait-for.ts'
import { type CircuitBreaker, createCircuitBreaker } from './circuit-breaker.ts'

const CALL_MS_MAX = 20
const breakers: CircuitBreaker[] = []

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['performance', 'setImmediate'] })
})
afterEach(async () => {
  for (const breaker of breakers.splice(0)) await breaker.stop()
  jest.useRealTimers()
})

/** Advances the clock, and runs what is then due. */
async function advance(ms: number): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms)
  await new Promise((resolve) => setImmediate(resolve))
}
const fail = () => Promise.reject<string>(new Error('down'))
const hang = () => new Promise<never>(() => undefined)

/** A breaker, what it has reported, and its probe, which the test replaces. */
function setUp({ reportsProbes = true } = {}) {
  const failures: unknown[] = []
  const openChanges: (readonly [isOpen: boolean, isProbed: boolean])[] = []
  const probeFailures: unknown[] = []
  const probes: { calls: number; reply: () => Promise<unknown> } = {
    calls: 0,
    reply: () => Promise.resolve(undefined),
  }
  const onProbeFailure = (error: unknown) => probeFailures.push(error)
  const breaker = createCircuitBreaker({
    probe() {
      probes.calls++
      return probes.reply()
    },
    callMsMax: CALL_MS_MAX,
    nowMs: Date.now,
    onFailure: (reason) => failures.push(reason),
    onOpenChange: (...change) => openChanges.push(change),
    ...(reportsProbes && { onProbeFailure }),
  })
  breakers.push(breaker)
  /** Fails a call in each of this number of periods. */
  const failPeriods = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await breaker.run(fail)
      await advance(CALL_MS_MAX)
    }
  }
  /** Sends a call, and completes it after its deadline. */
  const respondWithDelay = async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const started = breaker.runWithDelayedResult(() => promise)
    await advance(CALL_MS_MAX)
    resolve('delayed')
    const result = await started
    return typeof result === 'string' ? result : result.delayedResult
  }
  return {
    ...{ breaker, failures, openChanges, probes, probeFailures },
    ...{ failPeriods, respondWithDelay },
  }
}

describe('run()', () => {
  test.each(['result', 0, '', false])('returns the result %j', async (result) => {
    const { breaker, failures } = setUp()
    expect(await breaker.run(() => Promise.resolve(result))).toBe(result)
    expect(await breaker.runWithDelayedResult(() => Promise.resolve(result))).toBe(result)
    expect(failures).toEqual([])
  })

  test('reports the error of a call, also if the call throws it', async () => {
    const { breaker, failures } = setUp()
    const broken = (): Promise<string> => {
      throw new TypeError('a defect')
    }
    expect(await breaker.run(fail)).toBeUndefined()
    expect(await breaker.run(broken)).toBeUndefined()
    expect(failures).toEqual([new Error('down'), new TypeError('a defect')])
  })

  test('reports a timeout at the deadline of the call, not before', async () => {
    const { breaker, failures } = setUp()
    const results: unknown[] = []
    void breaker.run(hang).then((result) => results.push(result))
    await advance(CALL_MS_MAX - 1)
    expect([results, failures]).toEqual([[], []])
    await advance(1)
    expect([results, failures]).toEqual([[undefined], ['timeout']])
  })

  test('sends no call while the circuit is open, and reports it as unavailable', async () => {
    const { breaker, failures, failPeriods } = setUp()
    await failPeriods(5)
    failures.length = 0
    let calls = 0
    const call = () => Promise.resolve(++calls)
    expect(await breaker.run(call)).toBeUndefined()
    expect(await breaker.runWithDelayedResult(call)).toEqual({ delayedResult: undefined })
    expect([calls, failures]).toEqual([0, ['unavailable', 'unavailable']])
  })
})

describe('the circuit opens', () => {
  test('after failures in five periods; failures within a period count once', async () => {
    const { breaker, openChanges } = setUp()
    let nowMs = 0
    for (const atMs of [0, 19, 20, 40, 60, 79]) {
      await advance(atMs - nowMs)
      nowMs = atMs
      await breaker.run(fail)
    }
    expect([breaker.isOpen(), openChanges]).toEqual([false, []])
    await advance(1)
    await breaker.run(fail)
    expect([breaker.isOpen(), openChanges]).toEqual([true, [[true, false]]])
  })

  test('only after failures without a result between them', async () => {
    const { breaker, failPeriods } = setUp()
    await failPeriods(4)
    await breaker.run(() => Promise.resolve('result'))
    await failPeriods(4)
    expect(breaker.isOpen()).toBe(false)
    await failPeriods(1)
    expect(breaker.isOpen()).toBe(true)
  })

  test('once, although a call that was in flight fails in a later period', async () => {
    const { breaker, failures, openChanges, failPeriods } = setUp()
    await failPeriods(4)
    void breaker.run(hang)
    await breaker.run(fail)
    expect(openChanges).toEqual([[true, false]])
    await advance(CALL_MS_MAX)
    expect(failures.at(-1)).toBe('timeout')
    expect(openChanges).toEqual([[true, false]])
  })

  test('not after a stop', async () => {
    const { breaker, openChanges, failPeriods } = setUp()
    await breaker.stop()
    await failPeriods(6)
    expect([breaker.isOpen(), openChanges]).toEqual([false, []])
  })
})

describe('an open circuit', () => {
  test('closes after a successful probe, and counts failures from zero', async () => {
    const { breaker, openChanges, probes, failPeriods } = setUp()
    await failPeriods(5)
    expect(probes.calls).toBe(0) // the first probe is sent after a pause
    await advance(1000)
    expect(breaker.isUnresponsive()).toBe(true)
    await waitFor('a probe', () => !breaker.isOpen())
    expect([openChanges, probes.calls]).toEqual([
      [
        [true, false],
        [false, true],
      ],
      1,
    ])
    expect(breaker.isUnresponsive()).toBe(false)
    await failPeriods(4)
    expect(breaker.isOpen()).toBe(false)
    await failPeriods(1)
    expect(breaker.isOpen()).toBe(true)
  })

  test('closes after a delayed result, without a probe', async () => {
    const { breaker, openChanges, probes, failPeriods } = setUp()
    const { promise, resolve } = Promise.withResolvers<string>()
    const started = breaker.runWithDelayedResult(() => promise)
    await advance(CALL_MS_MAX)
    await failPeriods(5)
    expect(breaker.isOpen()).toBe(true)
    resolve('delayed')
    const result = await started
    expect(typeof result === 'string' ? result : await result.delayedResult).toBe('delayed')
    await waitFor('the circuit to close', () => !breaker.isOpen())
    expect([openChanges.at(-1), probes.calls]).toEqual([[false, false], 0])
  })
})

describe('a probe', () => {
  test('that exceeds 250 ms or fails is reported, and the circuit stays open', async () => {
    const { breaker, probes, probeFailures, failPeriods } = setUp()
    probes.reply = hang
    await failPeriods(5)
    await waitFor('a probe', () => probes.calls === 1)
    await advance(249)
    expect(probeFailures).toEqual([])
    probes.reply = fail
    await advance(1)
    expect(probeFailures).toEqual([new Error('timeout')])
    await waitFor('the next probe', () => probeFailures.length === 2)
    expect([probeFailures[1], breaker.isOpen()]).toEqual([new Error('down'), true])
  })

  test('that fails keeps the circuit open if nothing reports it', async () => {
    const { breaker, probes, openChanges, failPeriods } = setUp({ reportsProbes: false })
    probes.reply = fail
    await failPeriods(5)
    await waitFor('a probe', () => probes.calls === 1)
    await advance(0)
    expect([breaker.isOpen(), openChanges]).toEqual([true, [[true, false]]])
  })

  test('is not sent after a stop, which reports neither a change nor a failed probe', async () => {
    const stopped = setUp()
    await stopped.failPeriods(5)
    await stopped.breaker.stop()
    expect([stopped.probes.calls, stopped.openChanges]).toEqual([0, [[true, false]]])
    const probing = setUp()
    probing.probes.reply = hang
    await probing.failPeriods(5)
    await waitFor('a probe', () => probing.probes.calls === 1)
    const stopping = probing.breaker.stop()
    await advance(250)
    await stopping
    expect([probing.probeFailures, probing.openChanges]).toEqual([[], [[true, false]]])
  })
})

describe('a dependency', () => {
  test('is unresponsive 1 s after the first of its calls without a response', async () => {
    const { breaker } = setUp()
    expect(breaker.isUnresponsive()).toBe(false)
    await advance(5000)
    void breaker.run(hang)
    await advance(999)
    void breaker.run(hang)
    expect(breaker.isUnresponsive()).toBe(false)
    await advance(1)
    expect(breaker.isUnresponsive()).toBe(true)
    await breaker.run(() => Promise.resolve('result'))
    expect(breaker.isUnresponsive()).toBe(false)
  })

  test('that was slow is awaited after the circuit has opened and closed', async () => {
    const { breaker, failPeriods, respondWithDelay } = setUp()
    const respond = () => breaker.runWithDelayedResult(() => Promise.resolve('result'))
    expect(await respondWithDelay()).toBe('delayed')
    expect(await breaker.runWithDelayedResult(fail)).toMatchObject({ delayedResult: {} })
    await failPeriods(60) // longer than a second without a response
    await waitFor('a probe', () => !breaker.isOpen())
    expect(await respond()).toBe('result')
  })
})
