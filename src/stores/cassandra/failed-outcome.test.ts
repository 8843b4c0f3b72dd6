// Every observed shape of a failed statement (recipes/cassandra/NOTES.md §4) and its outcome; and
// which failures are rejections, or of a table that is being created.
import { describe, expect, test } from '@jest/globals'
import { errors } from 'cassandra-driver'
import { failureOf, isNewTableError, rejectionOf, shapeOf } from './failed-outcome.ts'

const response = (code: number, more: object = {}) =>
  Object.assign(new errors.ResponseError(code, 'a message from the server'), more)
const socketClosed = () => Object.assign(new Error('Socket was closed'), { isSocketError: true })

const unknown: readonly [string, unknown][] = [
  ['contention, no acknowledgement', response(0x1100, { writeType: 'CAS', received: 0 })],
  ['two of three nodes hang', response(0x1100, { writeType: 'CAS', received: 1 })],
  ['the commit timed out after the decision', response(0x1100, { writeType: 'SIMPLE' })],
  ['a commit that failed', response(0x1500, { writeType: 'CAS' })],
  ['a read timeout from a claim', response(0x1200, { isDataPresent: true })],
  ['a read failure from a claim', response(0x1300)],
  ['unavailable, which a commit may also return', response(0x1000, { required: 2, alive: 1 })],
  ['overloaded', response(0x1001)],
  ['bootstrapping', response(0x1002)],
  ['a server error', response(0x0000)],
  ['an unknown code', response(0x1700)],
  ['the coordinator hangs', new errors.OperationTimedOutError('did not reply')],
  ['the coordinator was killed', socketClosed()],
  ['a reset connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
  ['a defect of the driver', new errors.DriverInternalError('lost')],
  ['no error at all', 'text'],
  ['null', null],
]

const notDone: readonly [string, unknown][] = [
  ['nothing was sent: every host is down', new errors.NoHostAvailableError({})],
  ['every connection is full', new errors.NoHostAvailableError({ a: new Error('busy') })],
  ['bad credentials', response(0x0100)],
  ['rejected at login', new errors.AuthenticationError('no')],
  ['syntax', response(0x2000)],
  ['unauthorized', response(0x2100)],
  ['invalid', response(0x2200)],
  ['configuration', response(0x2300)],
  ['exists already', response(0x2400)],
  ['unprepared', response(0x2500)],
]

describe('failureOf()', () => {
  test.each(unknown)('is unknown: %s', (_, error) => {
    expect(failureOf(error)).toBe('unknown')
  })

  test.each(notDone)('is not-done: %s', (_, error) => {
    expect(failureOf(error)).toBe('not-done')
  })

  test.each([
    new TypeError('Invalid string representation of Uuid'),
    new RangeError('out of range'),
    new errors.ArgumentError('Parameter "a" not defined'),
  ])('is a defect for wrong arguments: %s', (error) => {
    expect(failureOf(error)).toBe('defect')
  })
})

test.each([
  ['syntax', 0x2000],
  ['unauthorized', 0x2100],
  ['invalid', 0x2200],
  ['configuration', 0x2300],
])('rejectionOf() returns the message of a permanent rejection: %s', (_, code) => {
  expect(rejectionOf(response(code))).toBe('a message from the server')
})

test.each([
  ['bad credentials', response(0x0100)],
  ['unprepared', response(0x2500)],
  ['a timeout', response(0x1200)],
  ['an error with the code of a rejection', Object.assign(new Error('no'), { code: 0x2200 })],
  ['no error at all', undefined],
])('rejectionOf() is undefined for another failure: %s', (_, error) => {
  expect(rejectionOf(error)).toBeUndefined()
})

const unknownTable = 'java.lang.IllegalArgumentException: Unknown CF 8f407497'

test.each([
  [true, 'invalid', response(0x2200)],
  [true, 'unknown to the node', new errors.ResponseError(0x0000, unknownTable)],
  [false, 'another exception', response(0x0000)],
  [false, 'a timeout with this message', new errors.ResponseError(0x1200, unknownTable)],
  [false, 'an error with this code', Object.assign(new Error('no'), { code: 0x2200 })],
  [false, 'no error at all', 'invalid'],
])('isNewTableError() is %s: %s', (expected, _, error) => {
  expect(isNewTableError(error)).toBe(expected)
})

test.each([
  [response(0x1000), { name: 'ResponseError', code: 0x1000, message: 'a message from the server' }],
  [{ message: 5 }, { message: '' }],
  ['a string', { message: 'a string' }],
  [null, { message: 'null' }],
  [undefined, { message: 'undefined' }],
])('shapeOf() returns the shape of any value: %s', (error, shape) => {
  expect(shapeOf(error)).toEqual({ name: undefined, code: undefined, ...shape })
})
