// Stream errors reset only their stream (RFC 9113 §5.4.2); other streams are not affected.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { startTestServer, type TestServer } from '../../kit/ratelimit/grpc-client.ts'
import {
  callHeaders,
  callOn,
  emptyCall,
  frame,
  headersOn,
  openFrames,
  opening,
  uint32,
} from '../../kit/ratelimit/grpc-frames.ts'

const cleanups: (() => unknown)[] = []
let server: TestServer
beforeEach(async () => {
  server = await startTestServer({}, { closeMsMax: 0 })
})
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0)) cleanUp()
  await server.close()
  expect(server.defects).toEqual([])
})

function open(...frames: readonly Buffer[]) {
  const client = openFrames(server.port, Buffer.concat([opening, ...frames]))
  cleanups.push(() => client.socket.destroy())
  return client
}

// Error codes of RFC 9113 §7.
const [PROTOCOL, FLOW, STREAM_CLOSED] = [1, 3, 5]

test('the listener resets a call whose body differs from its content-length', async () => {
  const length = (value: string) =>
    Buffer.concat([callHeaders, Buffer.from(`\0\x0econtent-length${value}`)])
  const data = (stream: number, bytes: Buffer, flags = 1) =>
    frame({ type: frameTypes.data, flags }, stream, bytes)
  const [wrong, right] = [length('\x018'), length('\x017')]
  const { frame: next, frames } = open(
    ...[headersOn(1, 4, wrong), data(1, emptyCall)],
    ...[headersOn(3, 5, right)],
    ...[headersOn(5, 4, right), data(5, emptyCall, 0), data(5, emptyCall, 0)],
    ...[headersOn(7, 4, length('\x02+7')), data(7, emptyCall)],
    headersOn(9, 4, Buffer.concat([right, wrong.subarray(callHeaders.length)])),
    ...[
      headersOn(11, 4, wrong),
      data(11, emptyCall, 0),
      headersOn(11, 5, Buffer.from('\0\x01x\x01y')),
    ],
    ...[headersOn(13, 4, Buffer.concat([right, right.subarray(callHeaders.length)]))],
    ...[data(13, emptyCall.subarray(0, 3), 0), data(13, emptyCall.subarray(3))],
  )
  await next(frameTypes.data, 13)
  const resets = frames.filter(({ type }) => type === frameTypes.rstStream)
  const codes = resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])
  expect(codes).toEqual([1, 3, 5, 7, 9, 11].map((stream) => [stream, PROTOCOL]))
})

test('the listener resets a half-closed call that sends more data, and only once', async () => {
  const data = (stream: number) => frame({ type: frameTypes.data, flags: 1 }, stream, emptyCall)
  const noPath = Buffer.from('\x83\x86', 'latin1')
  const { frame: next, frames, socket } = open(callOn(1))
  await next(frameTypes.data, 1)
  socket.write(Buffer.concat([data(1), data(1), headersOn(3, 4, noPath), data(3), callOn(5)]))
  await next(frameTypes.data, 5)
  const resets = frames.filter(({ type }) => type === frameTypes.rstStream)
  expect(resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])).toEqual([
    [1, STREAM_CLOSED],
    [3, PROTOCOL],
  ])
})

test('the listener checks the padding of a call even after its response', async () => {
  const { closed } = open(
    headersOn(1, 4, Buffer.from('\x83\x86\x84', 'latin1')), // gets 415 immediately
    frame({ type: frameTypes.data, flags: 8 }, 1, Buffer.from([200, 0])),
  )
  expect(await closed()).toBe(PROTOCOL)
})

test('the listener resets a call whose window exceeds 2^31 - 1', async () => {
  const widest = frame({ type: frameTypes.windowUpdate }, 1, uint32(2 ** 31 - 1))
  const { frame: next } = open(headersOn(1), widest, callOn(3))
  expect((await next(frameTypes.rstStream, 1)).payload.readUInt32BE()).toBe(FLOW)
  await next(frameTypes.data, 3)
})
