// V8's feedback for process.nextTick after garbage collections without queued ticks, in a process
// of its own: without the workaround, the literal becomes megamorphic.
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

const module = new URL('workaround-slow-ticks.ts', import.meta.url).href

/** The states of the feedback for the computed properties of a tick. */
function feedbackAfter(start: string): ReadonlySet<string> {
  const program = `
    import { setImmediate as nextTurn } from 'node:timers/promises'
    import { keepTicksFast } from ${JSON.stringify(module)}
    ${start}
    for (let turn = 0; turn < 60; turn++) {
      process.nextTick(() => undefined)
      await nextTurn()
      if (turn > 50) gc() // V8 collects feedback only for functions that are called often
    }
    const feedback = Function('return %GetFeedback(process.nextTick)')().filter(Boolean)
    const states = feedback.filter(([kind]) => kind === 'DefineKeyedOwnPropertyInLiteral')
    console.log(JSON.stringify(states.map(([, state]) => state)))`
  const flags = ['--expose-gc', '--allow-natives-syntax', '--input-type=module', '--eval', program]
  const output = execFileSync(process.execPath, flags, { encoding: 'utf8', timeout: 20_000 })
  return new Set(JSON.parse(output) as string[])
}

test('ticks stay monomorphic after garbage collections', () => {
  expect(feedbackAfter('keepTicksFast()')).toEqual(new Set(['MONOMORPHIC']))
})

test('without the workaround, they do not: remove it when this test fails', () => {
  expect(feedbackAfter('').has('MEGAMORPHIC')).toBe(true)
})
