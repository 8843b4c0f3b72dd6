// One call: what it sends within the windows, its budget, its slot, and its listener. On a
// connection whose other components are recorded.
import { describe, expect, test } from '@jest/globals'
import { openStream } from '../../../test/kit/ratelimit/http2-connection.ts'
import { errorCodes, frameTypes } from './frames.ts'

const HEADERS = `${frameTypes.headers} 4`
const TRAILERS = `${frameTypes.headers} 5`
const data = (bytes: number) => `${frameTypes.data} 0 ${bytes}`

const RESPONDED = ['responded', 'remove', 'closed']
const REJECTED = ['rejected', 'remove', 'closed']
const message = (bytes: number) => Buffer.alloc(bytes - 5, 'm')

describe('the only response', () => {
  test('has headers, one message and trailers, and uses the window of the connection', () => {
    const { stream, host, events, sent, streamIds } = openStream()
    stream.respond(message(20))
    expect([sent(), streamIds()]).toEqual([
      [HEADERS, data(20), TRAILERS],
      [1, 1, 1],
    ])
    expect([events, host.sendWindow, stream.isClosed]).toEqual([RESPONDED, 65_535 - 20, true])
  })

  test('is sent without a budget if it fits exactly into the windows and a frame', () => {
    const windows = [{ sendWindow: 20 }, { connectionWindow: 20 }, {}]
    for (const [i, bytes] of [20, 20, 16_384].entries()) {
      const { stream, sent } = openStream({ ...windows[i], outputMax: 0 })
      stream.respond(message(bytes))
      expect(sent()).toEqual([HEADERS, data(bytes), TRAILERS])
    }
  })

  test('is sent in several frames if it exceeds a frame', () => {
    const { stream, sent, events, budgets, payloads, host } = openStream()
    stream.respond(message(16_385))
    expect(sent()).toEqual([HEADERS, data(16_384), data(1), TRAILERS])
    expect([events, budgets.output.held]).toEqual([RESPONDED, 0])
    expect(payloads().subarray(19, 24)).toEqual(Buffer.from([0, 0, 0, 0x3f, 0xfc]))
    expect(host.sendWindow).toBe(65_535 - 16_385)
  })

  test('waits for the window of its stream', () => {
    const { stream, sent, events, budgets } = openStream({ sendWindow: 19 })
    stream.respond(message(20))
    expect([sent(), events, budgets.output.held]).toEqual([[HEADERS, data(19)], [], 1])
    expect([stream.sendWindow, stream.hasPendingOutput]).toEqual([0, true])
    stream.sendWindow = 5
    stream.pump()
    expect(sent()).toEqual([HEADERS, data(19), data(1), TRAILERS])
    expect([events, budgets.output.held, stream.sendWindow]).toEqual([RESPONDED, 0, 4])
  })

  test('waits for the window of the connection', () => {
    const { stream, host, sent, events } = openStream({ connectionWindow: 19 })
    stream.respond(message(20))
    expect([sent(), events]).toEqual([[HEADERS, data(19)], ['block']])
    host.sendWindow = -3
    stream.pump()
    expect(events).toEqual(['block', 'block'])
    host.sendWindow = 1
    stream.pump()
    expect([sent().slice(2), host.sendWindow]).toEqual([[data(1), TRAILERS], 0])
  })
})

describe('several responses', () => {
  test('are sent after one block of headers, and completed by trailers', () => {
    const { stream, sent, events } = openStream()
    stream.write(message(20))
    stream.write(message(30))
    expect([sent(), events]).toEqual([[HEADERS, data(20), data(30)], []])
    stream.end()
    expect([sent().at(-1), events]).toEqual([TRAILERS, RESPONDED])
  })

  test('of which there are none have headers and trailers', () => {
    const { stream, sent, events } = openStream()
    stream.end()
    expect([sent(), events]).toEqual([[HEADERS, TRAILERS], RESPONDED])
  })

  test('that are pending are sent in order; then the listener is notified', () => {
    const { stream, sent, events, budgets } = openStream({ sendWindow: -10 })
    for (const bytes of [20, 30]) stream.write(message(bytes))
    expect([sent(), events, budgets.output.held]).toEqual([[HEADERS], [], 50])
    stream.sendWindow = 25
    stream.pump()
    expect([sent(), events, budgets.output.held]).toEqual([[HEADERS, data(20), data(5)], [], 25])
    stream.sendWindow = 25
    stream.pump()
    expect([sent().at(-1), events, stream.hasPendingOutput]).toEqual([data(25), ['drained'], false])
    stream.pump()
    expect(events).toEqual(['drained'])
  })

  test('wait while the socket is full', () => {
    const { stream, host, sent, events } = openStream()
    host.output.isFull = true
    stream.write(message(20))
    expect([sent(), events]).toEqual([[HEADERS], ['block']])
    host.output.isFull = false
    stream.pump()
    expect([sent(), events]).toEqual([
      [HEADERS, data(20)],
      ['block', 'drained'],
    ])
  })

  test('that the budget does not allow reset the stream, and release the pending ones', () => {
    const { stream, sent, events, budgets } = openStream({ sendWindow: 0, outputMax: 50 })
    for (const bytes of [20, 30]) stream.write(message(bytes))
    expect(events).toEqual([])
    stream.write(message(6))
    expect(events).toEqual([`reset ${errorCodes.enhanceYourCalm}`, 'remove', 'closed'])
    expect([budgets.output.held, sent(), stream.hasPendingOutput]).toEqual([0, [HEADERS], false])
  })

  test('need no listener', () => {
    const { stream, events } = openStream({ sendWindow: 0 })
    stream.listener = undefined
    stream.write(message(20))
    stream.sendWindow = 20
    stream.pump()
    stream.end()
    expect(events).toEqual(['responded', 'remove'])
  })
})

describe('a rejection', () => {
  test('has the status and further fields in one block', () => {
    const { stream, sent, events, payloads } = openStream()
    stream.reject({ code: 'INTERNAL', details: '100 %' }, [['x-more', 'yes']])
    expect([sent(), events]).toEqual([[TRAILERS], REJECTED])
    const written = payloads().toString('latin1')
    for (const field of ['application/grpc', 'grpc-status\x0213', '\x07100 %25', 'x-more\x03yes']) {
      expect(written).toContain(field)
    }
  })

  test('after a response has no second headers, and drops pending output', () => {
    const { stream, sent, payloads, budgets } = openStream({ sendWindow: 3 })
    stream.write(message(20))
    expect(budgets.output.held).toBe(17)
    stream.reject({ code: 'INTERNAL', details: 'failed' })
    expect([sent(), budgets.output.held]).toEqual([[HEADERS, data(3), TRAILERS], 0])
    expect(payloads().toString('latin1').split('application/grpc')).toHaveLength(2)
  })

  test('spends from the abuse budget if the client causes it', () => {
    const codes = ['UNIMPLEMENTED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'INVALID_ARGUMENT'] as const
    const spent = codes.map((code) => {
      const { stream, events } = openStream()
      stream.reject({ code, details: '' })
      return events.includes('spend 1')
    })
    expect(spent).toEqual([true, true, false, false])
  })

  test('with an HTTP status spends from the abuse budget', () => {
    const { stream, sent, events, payloads } = openStream()
    stream.rejectHttp(415)
    expect([sent(), events]).toEqual([[TRAILERS], ['spend 1', ...REJECTED]])
    expect(payloads().toString('latin1')).toContain('415')
  })
})
