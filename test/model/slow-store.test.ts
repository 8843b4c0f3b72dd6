// The bound of a limit with several limiters and a slow store: at most 1.2 times the limit plus one
// hit for each limiter. Below the limit, nearly all hits are admitted.
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createRandom, newSeed } from '../kit/random.ts'
import { type Behaviour, simulate } from './slow-store.ts'

const TEST_MS_MAX = 180_000
const STEPS = 800
/** Milliseconds of a run with one client. */
const CALM_STEPS = 40_000
const seed = newSeed()
const algorithms = ['fixed_window', 'sliding_window_log', 'sliding_window_counter', 'token_bucket']
const ruleOf = (algorithm: string, requests: number) =>
  `{algorithm: ${algorithm}, unit: day, requests_per_unit: ${requests}}`

/** Sends requests at random rates, different per limiter; returns how many were admitted. */
async function simulateRandomCalls(given: {
  algorithm: string
  requests: number
  replicas: number
  seed: number
}): Promise<number> {
  const random = createRandom(given.seed)
  const { limiters, tick } = simulate({ ...given, rule: ruleOf(given.algorithm, given.requests) })
  const results: Promise<boolean>[] = []
  const change = (behaviour: Behaviour) => {
    behaviour.delayMs = random.pick([1, 1, 8, 10, 50, 100, 200])
    behaviour.loses = random.pick(['nothing', 'nothing', 'nothing', 'before', 'after'] as const)
    behaviour.isOpen = random.chance(0.2)
  }
  const rates = limiters.map(() => 0)
  for (let step = 0; step < STEPS; step++) {
    const changesAll = random.chance(0.01) // all change together, as with a shared network switch
    for (const [at, { behaviour, request }] of limiters.entries()) {
      if (changesAll || random.chance(0.005)) change(behaviour)
      if (changesAll || random.chance(0.01)) rates[at] = random.pick([0, 0, 0.05, 0.3, 3])
      const [rate = 0] = [rates[at]]
      const calls = rate < 1 ? Number(random.chance(rate)) : random.int(2 * rate)
      for (let call = 0; call < calls; call++) results.push(request('one'))
    }
    await tick()
  }
  for (const { behaviour } of limiters) Object.assign(behaviour, { delayMs: 1, loses: 'nothing' })
  for (let step = 0; step < 500; step++) await tick()
  return (await Promise.all(results)).filter((isAdmitted) => isAdmitted).length
}

describe('a slow store', () => {
  test(
    `admits at most 1.2 times the limit and one hit for each limiter, seed ${seed}`,
    async () => {
      const cases = fc.record({
        algorithm: fc.constantFrom(...algorithms),
        requests: fc.constantFrom(3, 30, 100, 400),
        replicas: fc.constantFrom(2, 3, 5),
        seed: fc.nat(),
      })
      const property = fc.asyncProperty(cases, async (one) => {
        const admitted = await simulateRandomCalls(one)
        expect(admitted).toBeLessThanOrEqual(Math.floor(1.2 * one.requests) + one.replicas)
      })
      await fc.assert(property, {
        seed,
        numRuns: 40,
        endOnFailure: true,
      })
    },
    TEST_MS_MAX,
  )

  test('stays within the bound if others exhaust the limit during slow responses', async () => {
    const { limiters, tick } = simulate({ rule: ruleOf('fixed_window', 600), replicas: 3 })
    const [slow, fast] = limiters
    if (slow === undefined || fast === undefined) throw new Error('there are three limiters')
    slow.behaviour.delayMs = 100
    const results: Promise<boolean>[] = []
    for (let step = 0; step < 1000; step++) {
      if (step === 250) for (let call = 0; call < 600; call++) results.push(fast.request('one'))
      const calls = step < 200 ? Number(step % 20 === 0) : step < 400 ? 3 : 0
      for (let call = 0; call < calls; call++) results.push(slow.request('one'))
      await tick()
    }
    const admitted = (await Promise.all(results)).filter((isAdmitted) => isAdmitted).length
    expect(admitted).toBeLessThanOrEqual(720 + 3)
  })

  test('stays within the bound in a window that starts without a report', async () => {
    const rule = '{algorithm: fixed_window, unit: second, requests_per_unit: 100}'
    const { limiters, tick } = simulate({ rule, replicas: 3 })
    const [first, second] = limiters
    if (first === undefined || second === undefined) throw new Error('there are three limiters')
    for (const { behaviour } of [first, second]) behaviour.delayMs = 60
    const ticks = async (count: number) => {
      for (let step = 0; step < count; step++) await tick()
    }
    await ticks(950)
    for (const { request } of [first, second]) void request('one')
    await ticks(50)
    const results = limiters.flatMap(({ request }) =>
      Array.from({ length: 100 }, () => request('one')),
    )
    await ticks(900)
    const admitted = (await Promise.all(results)).filter((isAdmitted) => isAdmitted).length
    expect(admitted).toBeLessThanOrEqual(120 + 3)
  })

  test.each([50, 200, 400])(
    'admits nearly all hits below the limit if responses take %i ms',
    async (ms) => {
      const { limiters, tick } = simulate({ rule: ruleOf('fixed_window', 1000), replicas: 3 })
      const results: Promise<boolean>[] = []
      for (const { behaviour } of limiters) behaviour.delayMs = ms / 2
      for (let step = 0; step < 9000; step++) {
        if (step % 10 === 0)
          for (const { request } of limiters.slice(0, 1)) results.push(request('one'))
        limiters.push(...limiters.splice(0, 1))
        await tick()
      }
      for (let step = 0; step < 500; step++) await tick()
      const admitted = (await Promise.all(results)).filter((isAdmitted) => isAdmitted).length
      expect(admitted).toBeGreaterThan(0.9 * results.length)
    },
  )

  test.each([
    // Rule; hits that the client sends each second; hits that it may send at once. The report of a
    // window does not state when its hits were counted: the share is smaller than what remains.
    ['{algorithm: token_bucket, unit: second, requests_per_unit: 20, burst: 40}', 18, 36],
    ['{algorithm: sliding_window_counter, unit: second, requests_per_unit: 20}', 5, 2],
    ['{algorithm: sliding_window_log, unit: second, requests_per_unit: 20}', 5, 2],
  ])(`never denies a client below the limit %s, seed ${seed}`, async (rule, rate, burst) => {
    const random = createRandom(seed)
    const { limiters, tick } = simulate({ rule, replicas: 1 })
    const [limiter] = limiters
    if (limiter === undefined) throw new Error('there is one limiter')
    const { behaviour, request } = limiter
    const results: Promise<boolean>[] = []
    let available = burst
    for (let step = 0; step < CALM_STEPS; step++) {
      if (random.chance(0.003)) {
        behaviour.delayMs = random.pick([1, 1, 8, 50, 200])
        // A call that is lost after it was counted takes hits from the client.
        behaviour.loses = random.pick(['nothing', 'nothing', 'before'] as const)
        behaviour.isOpen = random.chance(0.3)
      }
      available = Math.min(burst, available + rate / 1000)
      const isBurst = random.chance(0.001)
      for (; available >= 1 && (isBurst || random.chance(0.05)); available--)
        results.push(request('calm'))
      await tick()
    }
    Object.assign(behaviour, { delayMs: 1, loses: 'nothing', isOpen: false })
    for (let step = 0; step < 500; step++) await tick()
    const denied = (await Promise.all(results)).filter((isAdmitted) => !isAdmitted).length
    expect([results.length > CALM_STEPS / 500, denied]).toEqual([true, 0])
  })
})
