// The watch on the database: a log line and a health change per state change, and none between.
import { expect, test } from '@jest/globals'
import { createStoreWatch } from './store-watch.ts'

function watched() {
  const reports: unknown[] = []
  const report = (...args: unknown[]) => {
    reports.push(args)
  }
  const watch = createStoreWatch({
    health: { note: report },
    log: { error: report, warn: report, info: report },
    onWriterStopped: report,
  })
  const takeReports = () => reports.splice(0)
  return { watch, takeReports }
}

const recovered = [['store', 'up'], ['store available']]

test('only the first failure and the recovery are reported', () => {
  const { watch, takeReports } = watched()
  watch.succeeded('write')
  expect([watch.isDown(), takeReports()]).toEqual([false, []])
  watch.failed('write', 'disk is full')
  const line = [{ side: 'write', reason: 'disk is full' }, 'store unavailable']
  expect([watch.isDown(), takeReports()]).toEqual([true, [['store', 'down'], line]])
  watch.failed('write', 'disk is full')
  expect(takeReports()).toEqual([])
  watch.succeeded('write')
  watch.succeeded('write')
  expect([watch.isDown(), takeReports()]).toEqual([false, recovered])
})

test('working reads do not hide failing writes, nor vice versa', () => {
  const { watch, takeReports } = watched()
  watch.failed('write', 'disk is full')
  watch.failed('read', 'bad block')
  expect(takeReports()).toHaveLength(2)
  watch.succeeded('write')
  expect([watch.isDown(), takeReports()]).toEqual([true, []])
  watch.succeeded('read')
  expect([watch.isDown(), takeReports()]).toEqual([false, recovered])
})

test('the stop of the writer thread is reported', () => {
  const { watch, takeReports } = watched()
  const error = new Error('broken')
  watch.writerStopped(error)
  expect(takeReports()).toEqual([[error]])
})

test('a path that others could access is a warning, with the reason if it still is', () => {
  const { watch, takeReports } = watched()
  const found = { path: '/d/curtail.db', mode: '0644' }
  watch.restricted(found)
  watch.restricted({ ...found, reason: 'EPERM' })
  expect([watch.isDown(), takeReports()]).toEqual([
    false,
    [
      [found, 'access by others removed from DATA_DIR'],
      [{ ...found, reason: 'EPERM' }, 'cannot remove access by others from DATA_DIR'],
    ],
  ])
})
