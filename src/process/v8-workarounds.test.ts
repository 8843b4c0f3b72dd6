// What V8 does after garbage collections, in processes of their own, with each workaround and
// without.
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from '@jest/globals'

const module = new URL('v8-workarounds.ts', import.meta.url).href
const apply = (workaround: string) => `
  import { ${workaround} } from ${JSON.stringify(module)}
  ${workaround}()`

/** What the program prints, as JSON. */
function run(program: string): unknown {
  const flags = ['--expose-gc', '--allow-natives-syntax', '--max-semi-space-size=1']
  const args = [...flags, '--input-type=module', '--eval', program]
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 })
  return JSON.parse(output)
}

describe('process.nextTick, after garbage collections without queued ticks', () => {
  /** The states of the feedback for the computed properties of a tick. */
  const feedbackAfter = (start: string) => {
    const states = run(`${start}
      import { setImmediate as nextTurn } from 'node:timers/promises'
      for (let turn = 0; turn < 60; turn++) {
        process.nextTick(() => undefined)
        await nextTurn()
        if (turn > 50) gc() // V8 collects feedback only for functions that are called often
      }
      const feedback = Function('return %GetFeedback(process.nextTick)')().filter(Boolean)
      const states = feedback.filter(([kind]) => kind === 'DefineKeyedOwnPropertyInLiteral')
      console.log(JSON.stringify(states.map(([, state]) => state)))`)
    return new Set(states as string[])
  }

  test('stays monomorphic', () => {
    expect(feedbackAfter(apply('keepTicksFast'))).toEqual(new Set(['MONOMORPHIC']))
  })

  test('does not without the workaround: remove it when this test fails', () => {
    expect(feedbackAfter('').has('MEGAMORPHIC')).toBe(true)
  })
})

describe('a literal whose objects have survived minor garbage collections', () => {
  /** Whether a later object of the literal is allocated in the young generation. */
  const isYoungAfter = (start: string) =>
    run(`${start}
      const create = (number) => ({ number });
      %PrepareFunctionForOptimization(create);
      for (let round = 0; round < 20; round++) {
        const surviving = []
        for (let i = 0; i < 100_000; i++) surviving.push(create(i))
      }
      %OptimizeFunctionOnNextCall(create);
      create(0)
      console.log(JSON.stringify(%InYoungGeneration(create(0))))`)

  test('creates further ones in the young generation', () => {
    expect(isYoungAfter(apply('allocateInYoungGeneration'))).toBe(true)
  })

  test('does not without the workaround: remove it when this test fails', () => {
    expect(isYoungAfter('')).toBe(false)
  })
})
