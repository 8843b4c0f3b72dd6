// The states of one call: closed, half-closed, in progress; its slot, body and receive window.
import { describe, expect, test } from '@jest/globals'
import { openStream } from '../../../test/kit/ratelimit/http2-connection.ts'
import { errorCodes } from './frames.ts'

const CLOSED = ['remove', 'closed']

describe('a closed stream', () => {
  test('does nothing', () => {
    const { stream, events, sent } = openStream()
    stream.destroy()
    expect([events, stream.isClosed]).toEqual([CLOSED, true])
    stream.respond(Buffer.alloc(1))
    stream.write(Buffer.alloc(1))
    stream.end()
    stream.reject({ code: 'UNIMPLEMENTED', details: '' })
    stream.rejectHttp(415)
    stream.reset(errorCodes.protocol)
    stream.pump()
    stream.bytesReceived = 65_535
    stream.sendWindowUpdate()
    stream.destroy()
    expect([events, sent(), stream.hasPendingOutput]).toEqual([CLOSED, [], false])
  })

  test('releases its pending output, and does not send it', () => {
    const { stream, events, sent, budgets } = openStream({ sendWindow: 0 })
    stream.write(Buffer.alloc(10))
    expect([budgets.output.held, sent().length]).toEqual([15, 1])
    stream.destroy()
    stream.sendWindow = 100
    stream.pump()
    expect([budgets.output.held, sent().length, events]).toEqual([0, 1, CLOSED])
  })

  test('that was reset reports the code first', () => {
    const { stream, events } = openStream()
    stream.reset(errorCodes.flowControl)
    expect(events).toEqual([`reset ${errorCodes.flowControl}`, ...CLOSED])
  })

  test('is not reported as drained when its listener closes it', () => {
    const { stream, events } = openStream({ sendWindow: 0 })
    stream.write(Buffer.alloc(1))
    stream.end()
    stream.sendWindow = 100
    stream.pump()
    expect(events).toEqual(['responded', ...CLOSED])
  })

  test('needs no listener', () => {
    const { stream, events } = openStream()
    stream.listener = undefined
    stream.destroy()
    expect(events).toEqual(['remove'])
  })
})

describe('the slot of a call', () => {
  test('is freed when the stream is closed after its handler is done', () => {
    const { stream, events } = openStream()
    expect(stream.isInProgress).toBe(true)
    stream.handlerDone()
    stream.handlerDone()
    expect([events, stream.isInProgress]).toEqual([[], false])
    stream.destroy()
    stream.destroy()
    expect(events).toEqual(['remove', 'free slot', 'closed'])
  })

  test('is freed when the handler is done after the stream is closed', () => {
    const { stream, events } = openStream()
    stream.destroy()
    expect([events, stream.isInProgress]).toEqual([CLOSED, true])
    stream.handlerDone()
    stream.handlerDone()
    expect(events).toEqual([...CLOSED, 'free slot'])
  })
})

describe('the body of a request', () => {
  const PROTOCOL = [`reset ${errorCodes.protocol}`, ...CLOSED]

  const bodies: Record<string, readonly [length: number | undefined, number[], string[]]> = {
    'of any size without content-length': [undefined, [5, 1000], []],
    'of exactly its content-length': [10, [4, 6], []],
    'of 0 bytes': [0, [0], []],
    'that is too short': [10, [4, 5], PROTOCOL],
    'that is too long': [10, [4, 7], PROTOCOL],
    'with an invalid content-length': [NaN, [0], PROTOCOL],
  }

  test.each(Object.entries(bodies))('%s has the expected resets', (_, [length, chunks, resets]) => {
    const { stream, events } = openStream()
    stream.bodyBytesLeft = length
    const results = chunks.map((bytes, i) => stream.countBody(bytes, i === chunks.length - 1))
    expect(results).toEqual(chunks.map((_, i) => i < chunks.length - 1 || resets.length === 0))
    expect(events).toEqual(resets)
  })

  test('may have its last byte before END_STREAM, but not one more', () => {
    const { stream, events } = openStream()
    stream.bodyBytesLeft = 10
    expect([stream.countBody(10, false), stream.countBody(0, false), events]).toEqual([
      true,
      true,
      [],
    ])
    expect(stream.countBody(1, false)).toBe(false)
    expect(events).toEqual(PROTOCOL)
  })
})

describe('the receive window', () => {
  test('is restored once half of it is used', () => {
    const { stream, sent, payloads } = openStream()
    stream.bytesReceived = 32_767
    stream.sendWindowUpdate()
    expect([sent(), stream.bytesReceived]).toEqual([[], 32_767])
    stream.bytesReceived = 32_768
    stream.sendWindowUpdate()
    stream.sendWindowUpdate()
    expect([sent(), stream.bytesReceived]).toEqual([['8 0'], 0])
    expect(payloads().readUInt32BE()).toBe(32_768)
  })

  test('is not restored once the client has sent END_STREAM', () => {
    const { stream, sent } = openStream()
    stream.bytesReceived = 65_535
    stream.isRemoteClosed = true
    stream.sendWindowUpdate()
    expect(sent()).toEqual([])
  })
})

test('a stream uses the budgets and the time slices of its connection', () => {
  const { stream, budgets, events, jobs } = openStream()
  expect(stream.messageBudget).toBe(budgets.messages)
  stream.spend(7)
  stream.runLater(() => events.push('job'))
  for (const job of jobs) job()
  expect(events).toEqual(['spend 7', 'job'])
})
