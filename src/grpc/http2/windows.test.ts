// The exact bounds of the flow-control windows (RFC 9113 §6.9).
import { expect, test } from '@jest/globals'
import { countedBudget, openPipe } from '../../../test/kit/ratelimit/http2-connection.ts'
import { FrameOutput } from './frame-output.ts'
import { errorCodes, frameTypes, INITIAL_WINDOW_SIZE, MAX_WINDOW_SIZE } from './frames.ts'
import { increaseWindow, readIncrement, ReceiveWindow } from './windows.ts'

const increment = (value: number) => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(value)
  return readIncrement({ type: frameTypes.windowUpdate, flags: 0, streamId: 0, payload })
}

test('an increment has 31 bits, and is not 0', () => {
  expect([1, 2 ** 31 - 1, 2 ** 31 + 5].map(increment)).toEqual([1, 2 ** 31 - 1, 5])
  for (const zero of [0, 2 ** 31]) {
    expect(() => increment(zero)).toThrow(expect.objectContaining({ code: errorCodes.protocol }))
  }
})

test('a send window may be negative, and at most 2^31 - 1', () => {
  const target = { sendWindow: 10 }
  increaseWindow(target, -30)
  expect(target.sendWindow).toBe(-20)
  increaseWindow(target, MAX_WINDOW_SIZE)
  increaseWindow(target, 20)
  expect(target.sendWindow).toBe(MAX_WINDOW_SIZE)
  expect(() => {
    increaseWindow(target, 1)
  }).toThrow(expect.objectContaining({ code: errorCodes.flowControl }))
})

test('the receive window has 1 MiB, and is restored when more than half of it is used', () => {
  const { duplex, frames } = openPipe()
  const output = new FrameOutput(duplex, countedBudget())
  const window = new ReceiveWindow(output)
  const updates = () => {
    output.flush()
    return frames().map(({ type, stream, payload }) => [type, stream, payload.readUInt32BE()])
  }
  const update = (bytes: number) => [frameTypes.windowUpdate, 0, bytes]
  const opened = update(1024 * 1024 - INITIAL_WINDOW_SIZE)
  window.receive(512 * 1024 - 1)
  window.receive(1)
  expect(updates()).toEqual([opened])
  window.receive(7)
  window.receive(512 * 1024)
  expect(updates()).toEqual([opened, update(512 * 1024 + 7)])
  window.receive(1)
  expect(updates()).toEqual([opened, update(512 * 1024 + 7), update(512 * 1024 + 1)])
})
