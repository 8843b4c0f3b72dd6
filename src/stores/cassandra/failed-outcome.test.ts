// Every observed shape of a failed statement (recipes/cassandra/NOTES.md §4) and its outcome.
import { describe, expect, test } from '@jest/globals'
import { errors } from 'cassandra-driver'
import { failureOf } from './failed-outcome.ts'

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
