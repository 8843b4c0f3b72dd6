// What the span of a statement says, and that no statement has one outside a traced request.
import { expect, test } from '@jest/globals'
import { StoreError } from '../../resilience/store-error.ts'
import { recordSpans } from '../../../test/parts/recording-spans.ts'
import { traceStatements } from './trace-statements.ts'

const READ = 'SELECT long_url\n  FROM links WHERE short_code = ?'
const answer = {
  rows: [],
  info: { triedHosts: { 'a:9042': null, 'b:9042': null }, speculativeExecutions: 1 },
}
const run = () => Promise.resolve(answer)

function inRequest<T>(spans: ReturnType<typeof recordSpans>, work: () => T): T {
  const request = spans.serve({ traceparent: 'sampled' }, { name: 'GET', facts: {} })
  return request === undefined ? work() : spans.within(request, work)
}

test('where tracing is off the statements stay as they are', () => {
  expect(traceStatements(run, undefined)).toBe(run)
})

test('a statement of a traced request has a span; its values are not told', async () => {
  const spans = recordSpans()
  const traced = traceStatements(run, spans)
  expect(await inRequest(spans, () => traced('majority-read', READ, ['secret']))).toBe(answer)
  expect(spans.recorded[1]).toEqual({
    name: 'SELECT links',
    within: 'GET',
    isEnded: true,
    facts: {
      'db.system.name': 'cassandra',
      'db.query.text': 'SELECT long_url FROM links WHERE short_code = ?',
      'db.query.summary': 'SELECT links',
      'curtail.statement': 'majority-read',
      'cassandra.speculative_execution.count': 1,
      'curtail.cassandra.nodes_tried': 2,
    },
  })
  await traced('majority-read', READ, [])
  expect(spans.recorded).toHaveLength(2)
})

test.each([
  [new StoreError('no answer', { outcome: 'unknown' }), 'unknown'],
  [new TypeError('no'), 'defect'],
])('%s fails its span as %s, and goes on to whoever asked', async (error, kind) => {
  const spans = recordSpans()
  const traced = traceStatements(() => Promise.reject(error), spans)
  await expect(inRequest(spans, () => traced('lwt', 'UPDATE links SET a = ?'))).rejects.toBe(error)
  expect(spans.recorded[1]).toMatchObject({ name: 'UPDATE links', failure: kind, isEnded: true })
})
