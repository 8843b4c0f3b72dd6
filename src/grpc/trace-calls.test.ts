// Which gRPC calls get a span, and which status it records.
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../test/kit/recording-spans.ts'
import { traceCalls } from './trace-calls.ts'
import type { UnaryMethod } from './unary-call.ts'

const message = Buffer.from('')
const headersOf = (traceparent?: string) => {
  return { path: '/a.B/C', encoding: 'identity', timeoutMs: undefined, traceparent } as const
}

test('without tracing, and for an untraced call, the method is not wrapped', () => {
  const method: UnaryMethod = () => ({ code: 'OK', message })
  expect(traceCalls(method, undefined)(headersOf('sampled'))).toBe(method)
  expect(traceCalls(method, recordSpans())(headersOf())).toBe(method)
})

test('a traced call has a span, with child spans of its requests', async () => {
  const spans = recordSpans()
  const method: UnaryMethod = () => {
    spans.startClientSpan(() => ({ name: 'EVALSHA', attributes: {} }))?.end()
    return { code: 'OK', message }
  }
  expect(await traceCalls(method, spans)(headersOf('sampled'))(message)).toEqual({
    code: 'OK',
    message,
  })
  expect(spans.recorded).toMatchObject([
    {
      name: 'a.B/C',
      attributes: { 'rpc.service': 'a.B', 'rpc.method': 'C', 'rpc.grpc.status_code': 0 },
      isClosed: true,
    },
    { name: 'EVALSHA', within: 'a.B/C', isClosed: true },
  ])
  expect(spans.recorded[0]?.failure).toBeUndefined()
})

test.each([
  ['INTERNAL', 'INTERNAL'],
  ['INVALID_ARGUMENT', undefined],
] as const)('the status %s sets the failure of the span to %s', async (code, failure) => {
  const spans = recordSpans()
  await traceCalls(() => ({ code, details: '' }), spans)(headersOf('sampled'))(message)
  expect(spans.recorded[0]?.failure).toBe(failure)
})

test('a span ends even if the method throws', async () => {
  const spans = recordSpans()
  const method = () => Promise.reject(new Error('no'))
  await expect(traceCalls(method, spans)(headersOf('sampled'))(message)).rejects.toThrow('no')
  expect(spans.recorded[0]?.isClosed).toBe(true)
})
