// Which requests get a span, its name, and when it is marked as failed.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../test/kit/recording-spans.ts'
import { traceRequests } from './trace-requests.ts'

/** A request to `url` without a connection. */
function exchangeOf(url: string, headers: Readonly<Record<string, string>> = {}) {
  const req = new IncomingMessage(new Socket())
  Object.assign(req, { method: 'GET', url, headers: { ...headers } })
  return { req, res: new ServerResponse(req) }
}

/** The span of a request that completes with this status, or is aborted. */
function spanOf(url: string, { status = 200, isComplete = true } = {}) {
  const spans = recordSpans()
  const { req, res } = exchangeOf(url, { traceparent: 'sampled', 'x-request-id': 'id-1' })
  traceRequests((_req, response) => {
    response.statusCode = status
  }, spans)(req, res)
  Object.defineProperty(res, 'writableFinished', { value: isComplete })
  expect(spans.recorded[0]?.isClosed).toBe(false)
  res.emit('close')
  return spans.recorded[0]
}

test('without tracing the handler is unchanged; an untraced request has no span', () => {
  const handle = () => undefined
  expect(traceRequests(handle, undefined)).toBe(handle)
  const spans = recordSpans()
  const { req, res } = exchangeOf('/abc')
  traceRequests(handle, spans)(req, res)
  expect([spans.recorded, res.listenerCount('close')]).toEqual([[], 0])
})

test.each([
  ['/abcdefg?utm=1', 'GET /{code}'],
  ['/v1/urls', 'GET /v1/urls'],
  ['/a/b', 'GET'],
])('the span of %s is named %s', (url, name) => {
  const span = spanOf(url)
  expect(span).toMatchObject({ name, isClosed: true })
  expect(span?.attributes).toMatchObject({
    'url.path': url.replace(/\?.*/, ''),
    'http.request.header.x-request-id': ['id-1'],
    'http.response.status_code': 200,
  })
})

test.each([
  [{ status: 302 }, undefined],
  [{ status: 429 }, undefined],
  [{ status: 503 }, '503'],
  [{ status: 302, isComplete: false }, 'aborted'],
])('response %p sets the span error to %s', (response, failure) => {
  expect(spanOf('/abcdefg', response)?.failure).toBe(failure)
})

test('calls of the handler are child spans; a missing request id is generated', () => {
  const spans = recordSpans()
  const { req, res } = exchangeOf('/abcdefg', { traceparent: 'sampled' })
  traceRequests(() => {
    spans.startClientSpan(() => ({ name: 'GET', attributes: {} }))
  }, spans)(req, res)
  expect(spans.recorded[1]).toMatchObject({ name: 'GET', within: 'GET' })
  const id = req.headers['x-request-id']
  expect(id).toMatch(/./)
  expect(spans.recorded[0]?.attributes['http.request.header.x-request-id']).toEqual([id])
})
