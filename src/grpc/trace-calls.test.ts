// Which calls of gRPC get a span, and what it says of their end.
import { expect, test } from '@jest/globals'
import { recordSpans } from '../../test/parts/recording-spans.ts'
import { traceCalls } from './trace-calls.ts'
import type { UnaryMethod } from './unary-call.ts'

const message = Buffer.from('')
const headOf = (traceparent?: string) => {
  return { path: '/a.B/C', packing: 'identity', timeoutMs: undefined, traceparent } as const
}

test('where tracing is off, and for a call that is not traced, the method stays as it is', () => {
  const method: UnaryMethod = () => ({ code: 'OK', message })
  expect(traceCalls(method, undefined)(headOf('sampled'))).toBe(method)
  expect(traceCalls(method, recordSpans())(headOf())).toBe(method)
})

test('a call that is traced has a span, and what it asks of others is within it', async () => {
  const spans = recordSpans()
  const method: UnaryMethod = () => {
    spans.ask(() => ({ name: 'EVALSHA', facts: {} }))?.end()
    return { code: 'OK', message }
  }
  expect(await traceCalls(method, spans)(headOf('sampled'))(message)).toEqual({
    code: 'OK',
    message,
  })
  expect(spans.recorded).toMatchObject([
    {
      name: 'a.B/C',
      facts: { 'rpc.service': 'a.B', 'rpc.method': 'C', 'rpc.grpc.status_code': 0 },
      isEnded: true,
    },
    { name: 'EVALSHA', within: 'a.B/C', isEnded: true },
  ])
  expect(spans.recorded[0]?.failure).toBeUndefined()
})

test.each([
  ['INTERNAL', 'INTERNAL'],
  ['INVALID_ARGUMENT', undefined],
] as const)('an answer %s is a failure of the span: %s', async (code, failure) => {
  const spans = recordSpans()
  await traceCalls(() => ({ code, details: '' }), spans)(headOf('sampled'))(message)
  expect(spans.recorded[0]?.failure).toBe(failure)
})

test('a span ends also where the method throws', async () => {
  const spans = recordSpans()
  const method = () => Promise.reject(new Error('no'))
  await expect(traceCalls(method, spans)(headOf('sampled'))(message)).rejects.toThrow('no')
  expect(spans.recorded[0]?.isEnded).toBe(true)
})
