// Attributes of a statement's span; a statement outside a traced request has no span.
import { expect, test } from '@jest/globals'
import { StoreError } from '../../resilience/store-error.ts'
import { recordSpans } from '../../../test/kit/recording-spans.ts'
import { traceStatements } from './trace-statements.ts'

const READ = 'SELECT long_url\n  FROM links WHERE short_code = ?'
const result = {
  rows: [],
  info: { triedHosts: { 'a:9042': null, 'b:9042': null }, speculativeExecutions: 1 },
}
const run = () => Promise.resolve(result)

function inRequest<T>(spans: ReturnType<typeof recordSpans>, work: () => T): T {
  const request = spans.startServerSpan({ traceparent: 'sampled' }, { name: 'GET', attributes: {} })
  return request === undefined ? work() : spans.runInSpan(request, work)
}

test('statements are not wrapped if tracing is off', () => {
  expect(traceStatements(run, undefined)).toBe(run)
})

test('a statement of a traced request has a span without its values', async () => {
  const spans = recordSpans()
  const traced = traceStatements(run, spans)
  expect(await inRequest(spans, () => traced('majority-read', READ, ['secret']))).toBe(result)
  expect(spans.recorded[1]).toEqual({
    name: 'SELECT links',
    within: 'GET',
    isClosed: true,
    attributes: {
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
  [new StoreError('no result', { outcome: 'unknown' }), 'unknown'],
  [new TypeError('no'), 'defect'],
])('%s fails its span as %s and is rethrown', async (error, kind) => {
  const spans = recordSpans()
  const traced = traceStatements(() => Promise.reject(error), spans)
  await expect(inRequest(spans, () => traced('lwt', 'UPDATE links SET a = ?'))).rejects.toBe(error)
  expect(spans.recorded[1]).toMatchObject({ name: 'UPDATE links', failure: kind, isClosed: true })
})

test.each([
  ['INSERT INTO\n  links (short_code) VALUES (?)', 'INSERT links'],
  ['\n  UPDATE links SET a = ?', 'UPDATE links'],
  ['CREATE KEYSPACE x', 'CREATE'],
])('the span of %j has the name %j', async (cql, name) => {
  const spans = recordSpans()
  const traced = traceStatements(run, spans)
  await inRequest(spans, () => traced('lwt', cql))
  expect(spans.recorded[1]?.name).toBe(name)
})

test.each([
  ['info', {}],
  ['hosts', { info: {} }],
])('a result without %s has no attempts', async (_, empty) => {
  const spans = recordSpans()
  const traced = traceStatements<object>(() => Promise.resolve(empty), spans)
  await inRequest(spans, () => traced('lwt', READ))
  expect(spans.recorded[1]?.attributes).toMatchObject({
    'cassandra.speculative_execution.count': 0,
    'curtail.cassandra.nodes_tried': 0,
  })
})
