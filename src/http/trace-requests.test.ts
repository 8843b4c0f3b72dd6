// Which requests get a span, what it is called, and when it says that something went wrong.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../test/parts/recording-spans.ts'
import { traceRequests } from './trace-requests.ts'

/** A request to `url` that nobody has sent. */
function exchangeOf(url: string, headers: Readonly<Record<string, string>> = {}) {
  const req = new IncomingMessage(new Socket())
  Object.assign(req, { method: 'GET', url, headers: { ...headers } })
  return { req, res: new ServerResponse(req) }
}

/** Has a request answered with this status, or broken off, and gives its span. */
function spanOf(url: string, { status = 200, isWhole = true } = {}) {
  const spans = recordSpans()
  const { req, res } = exchangeOf(url, { traceparent: 'sampled', 'x-request-id': 'id-1' })
  traceRequests((_req, answer) => {
    answer.statusCode = status
  }, spans)(req, res)
  Object.defineProperty(res, 'writableFinished', { value: isWhole })
  expect(spans.recorded[0]?.isEnded).toBe(false)
  res.emit('close')
  return spans.recorded[0]
}

test('where tracing is off, what answers stays as it is; who is not traced has no span', () => {
  const answer = () => undefined
  expect(traceRequests(answer, undefined)).toBe(answer)
  const spans = recordSpans()
  const { req, res } = exchangeOf('/abc')
  traceRequests(answer, spans)(req, res)
  expect([spans.recorded, res.listenerCount('close')]).toEqual([[], 0])
})

test.each([
  ['/abcdefg?utm=1', 'GET /{code}'],
  ['/v1/urls', 'GET /v1/urls'],
  ['/a/b', 'GET'],
])('a request for %s is called %s', (url, name) => {
  const span = spanOf(url)
  expect(span).toMatchObject({ name, isEnded: true })
  expect(span?.facts).toMatchObject({
    'url.path': url.replace(/\?.*/, ''),
    'http.request.header.x-request-id': ['id-1'],
    'http.response.status_code': 200,
  })
})

test.each([
  [{ status: 302 }, undefined],
  [{ status: 429 }, undefined],
  [{ status: 503 }, '503'],
  [{ status: 302, isWhole: false }, 'aborted'],
])('an answer %p fails the span as %s', (answer, failure) => {
  expect(spanOf('/abcdefg', answer)?.failure).toBe(failure)
})

test('what is asked of others meanwhile is within the span; an id is made where none came', () => {
  const spans = recordSpans()
  const { req, res } = exchangeOf('/abcdefg', { traceparent: 'sampled' })
  traceRequests(() => {
    spans.ask(() => ({ name: 'GET', facts: {} }))
  }, spans)(req, res)
  expect(spans.recorded[1]).toMatchObject({ name: 'GET', within: 'GET' })
  const id = req.headers['x-request-id']
  expect(id).toMatch(/./)
  expect(spans.recorded[0]?.facts['http.request.header.x-request-id']).toEqual([id])
})
