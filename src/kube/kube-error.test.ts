// Errors of the API server: which fields of a response they take, and their defaults.
import { expect, test } from '@jest/globals'
import { errorOfStatus, hasStatus, KubeError } from './kube-error.ts'

test.each([
  [undefined, undefined],
  [0, 0],
  [1500, 1500],
  [60_000, 60_000],
  [3_600_000, 60_000],
])('a requested delay of %p ms becomes %p ms', (given, expected) => {
  const failure = { status: 429, reason: 'TooManyRequests', retryAfterMs: given }
  expect(new KubeError('no', failure).retryAfterMs).toBe(expected)
})

test('has the status, the reason and the cause of the failure', () => {
  const cause = new Error('reset')
  const error = new KubeError('no', { status: 0, reason: 'Unreachable', cause })
  expect(error).toMatchObject({ name: 'KubeError', status: 0, reason: 'Unreachable', cause })
})

test('only a KubeError has a status', () => {
  const error = new KubeError('no', { status: 404, reason: 'NotFound' })
  expect([hasStatus(error, 404), hasStatus(error, 409)]).toEqual([true, false])
  expect(hasStatus(Object.assign(new Error('no'), { status: 404 }), 404)).toBe(false)
  expect(hasStatus(undefined, 404)).toBe(false)
})

const complete = { code: 409, reason: 'Conflict', message: 'changed' }

test.each<readonly [unknown, object]>([
  [complete, { status: 409, reason: 'Conflict', message: 'changed', retryAfterMs: undefined }],
  [
    { ...complete, details: { retryAfterSeconds: 3 } },
    { status: 409, reason: 'Conflict', retryAfterMs: 3000 },
  ],
  [{ ...complete, details: { retryAfterSeconds: '3' } }, { retryAfterMs: undefined }],
  [
    { ...complete, details: null },
    { status: 409, retryAfterMs: undefined },
  ],
  [
    { code: '409', reason: 1, message: {} },
    { status: 500, reason: 'Unknown' },
  ],
  [{}, { status: 500, reason: 'Unknown', message: 'the API server returned 500' }],
  [null, { status: 500, reason: 'Unknown', message: 'the API server returned 500' }],
  ['busy', { status: 500, reason: 'Unknown' }],
  [undefined, { status: 500, reason: 'Unknown' }],
])('the document %j with status 500 becomes the error %j', (document, expected) => {
  const error = errorOfStatus(document, { status: 500 })
  expect(error).toBeInstanceOf(KubeError)
  expect(error).toMatchObject(expected)
})

test('the delay of the header takes precedence over that of the document', () => {
  const document = { details: { retryAfterSeconds: 3 } }
  const error = errorOfStatus(document, { status: 429, retryAfterMs: 2000 })
  expect(error.retryAfterMs).toBe(2000)
})
