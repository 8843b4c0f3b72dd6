// The watch over the database: a line and a note when its state changes, and none between.
import { expect, test } from '@jest/globals'
import { createStoreWatch } from './store-watch.ts'

function watched() {
  const told: unknown[] = []
  const say = (...what: unknown[]) => {
    told.push(what)
  }
  const watch = createStoreWatch({
    health: { note: say },
    log: { error: say, warn: say, info: say },
    onEnded: say,
  })
  const toldSince = () => told.splice(0)
  return { watch, toldSince }
}

const isBack = [['store', 'up'], ['the store is back']]

test('the first failure is told in its words, the next ones are not, and the end is', () => {
  const { watch, toldSince } = watched()
  watch.worked('write')
  expect([watch.isDown(), toldSince()]).toEqual([false, []])
  watch.failed('write', 'disk is full')
  const line = [{ side: 'write', reason: 'disk is full' }, 'the store fails']
  expect([watch.isDown(), toldSince()]).toEqual([true, [['store', 'down'], line]])
  watch.failed('write', 'disk is full')
  expect(toldSince()).toEqual([])
  watch.worked('write')
  watch.worked('write')
  expect([watch.isDown(), toldSince()]).toEqual([false, isBack])
})

test('reads that work do not hide that writes fail, nor the other way round', () => {
  const { watch, toldSince } = watched()
  watch.failed('write', 'disk is full')
  watch.failed('read', 'bad block')
  expect(toldSince()).toHaveLength(2)
  watch.worked('write')
  expect([watch.isDown(), toldSince()]).toEqual([true, []])
  watch.worked('read')
  expect([watch.isDown(), toldSince()]).toEqual([false, isBack])
})

test('the end of the thread is handed on', () => {
  const { watch, toldSince } = watched()
  const error = new Error('broken')
  watch.ended(error)
  expect(toldSince()).toEqual([[error]])
})
