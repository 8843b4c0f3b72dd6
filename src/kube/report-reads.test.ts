// The log, the health and the callback of reads that succeed and fail.
import { expect, test } from '@jest/globals'
import { KubeError } from './kube-error.ts'
import { reportReads } from './report-reads.ts'

const failure = new KubeError('no', { status: 503, reason: 'ServiceUnavailable' })

function start() {
  const notes: string[] = []
  const lines: (readonly [string, object | string])[] = []
  let reads = 0
  const report = reportReads(
    {
      health: { note: (resource, state) => notes.push(`${resource} ${state}`) },
      log: {
        info: (fields: object | string) => lines.push(['info', fields]),
        warn: (fields: object | string) => lines.push(['warn', fields]),
      },
    },
    () => reads++,
  )
  return { report, notes, lines, reads: () => reads }
}

test('reports each read to health, and counts only successful ones', () => {
  const { report, notes, reads } = start()
  report('a', undefined)
  report('a', failure)
  report('b', undefined)
  expect([notes, reads()]).toEqual([['a up', 'a down', 'b up'], 2])
})

test('logs the first of consecutive failures of a resource, and its recovery', () => {
  const { report, lines } = start()
  report('a', undefined)
  expect(lines).toEqual([])
  for (const resource of ['a', 'a', 'b']) report(resource, failure)
  expect(lines).toEqual([
    ['warn', { err: failure, resource: 'a' }],
    ['warn', { err: failure, resource: 'b' }],
  ])
  for (const resource of ['a', 'a']) report(resource, undefined)
  expect(lines.slice(2)).toEqual([['info', { resource: 'a' }]])
  report('a', failure)
  expect(lines.slice(3)).toEqual([['warn', { err: failure, resource: 'a' }]])
})
