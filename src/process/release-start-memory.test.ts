// The garbage of the start is collected, and the program keeps no access to the collector.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import { expect, test } from '@jest/globals'
import { releaseStartMemory } from './release-start-memory.ts'

test('collects unreferenced objects, and does not leave the collector exposed', async () => {
  const garbage = new WeakRef(Array.from({ length: 1000 }, (_, i) => ({ i })))
  await nextTurn() // a WeakRef keeps its object until the end of its turn
  expect(garbage.deref()).toBeDefined()
  await nextTurn()
  releaseStartMemory()
  expect(garbage.deref()).toBeUndefined()
  expect(runInNewContext('typeof gc')).toBe('undefined')
})
