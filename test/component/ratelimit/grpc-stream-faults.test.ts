// Stream errors reset only their stream (RFC 9113 §5.4.2); other streams are not affected.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { frameTypes } from '../../../src/grpc/http2/frames.ts'
import { startTestServer, type TestServer } from '../../kit/ratelimit/grpc-client.ts'
import {
  callHeaders,
  callOn,
  emptyCall,
  frame,
  openFrames,
  opening,
} from '../../kit/ratelimit/grpc-frames.ts'

const cleanups: (() => unknown)[] = []
let server: TestServer
beforeEach(async () => {
  server = await startTestServer({}, { closeMsMax: 0 })
})
afterEach(async () => {
  for (const end of cleanups.splice(0)) end()
  await server.close()
  expect(server.defects).toEqual([])
})

function open(...frames: readonly Buffer[]) {
  const client = openFrames(server.port, Buffer.concat([opening, ...frames]))
  cleanups.push(() => client.socket.destroy())
  return client
}

const headers = (stream: number, flags = 4, block = callHeaders) =>
  frame({ type: frameTypes.headers, flags }, stream, block)
const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
// Error codes of RFC 9113 §7.
const [PROTOCOL, FLOW, STREAM_CLOSED] = [1, 3, 5]

test('a call whose body differs from its content-length is reset', async () => {
  const length = (text: string) =>
    Buffer.concat([callHeaders, Buffer.from(`\0\x0econtent-length${text}`)])
  const data = (stream: number, bytes: Buffer, flags = 1) =>
    frame({ type: frameTypes.data, flags }, stream, bytes)
  const [wrong, right] = [length('\x018'), length('\x017')]
  const { frame: next, frames } = open(
    ...[headers(1, 4, wrong), data(1, emptyCall)],
    ...[headers(3, 5, right)],
    ...[headers(5, 4, right), data(5, emptyCall, 0), data(5, emptyCall, 0)],
    ...[headers(7, 4, length('\x02+7')), data(7, emptyCall)],
    headers(9, 4, Buffer.concat([right, wrong.subarray(callHeaders.length)])),
    ...[headers(11, 4, wrong), data(11, emptyCall, 0), headers(11, 5, Buffer.from('\0\x01x\x01y'))],
    ...[headers(13, 4, Buffer.concat([right, right.subarray(callHeaders.length)]))],
    ...[data(13, emptyCall.subarray(0, 3), 0), data(13, emptyCall.subarray(3))],
  )
  await next(frameTypes.data, 13)
  const resets = frames.filter(({ type }) => type === frameTypes.rstStream)
  const codes = resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])
  expect(codes).toEqual([1, 3, 5, 7, 9, 11].map((stream) => [stream, PROTOCOL]))
})

test('a call that sends more after its end is reset once, unless it is already reset', async () => {
  const data = (stream: number) => frame({ type: frameTypes.data, flags: 1 }, stream, emptyCall)
  const noPath = Buffer.from('\x83\x86', 'latin1')
  const { frame: next, frames, socket } = open(callOn(1))
  await next(frameTypes.data, 1)
  socket.write(Buffer.concat([data(1), data(1), headers(3, 4, noPath), data(3), callOn(5)]))
  await next(frameTypes.data, 5)
  const resets = frames.filter(({ type }) => type === frameTypes.rstStream)
  expect(resets.map(({ stream, payload }) => [stream, payload.readUInt32BE()])).toEqual([
    [1, STREAM_CLOSED],
    [3, PROTOCOL],
  ])
})

test('the padding of a call is checked also after its response', async () => {
  const { ended } = open(
    headers(1, 4, Buffer.from('\x83\x86\x84', 'latin1')), // gets 415 at once
    frame({ type: frameTypes.data, flags: 8 }, 1, Buffer.from([200, 0])),
  )
  expect(await ended()).toBe(PROTOCOL)
})

test('a call whose window exceeds 2^31 - 1 is reset', async () => {
  const widest = frame({ type: frameTypes.windowUpdate }, 1, number(2 ** 31 - 1))
  const { frame: next } = open(headers(1), widest, callOn(3))
  expect((await next(frameTypes.rstStream, 1)).payload.readUInt32BE()).toBe(FLOW)
  await next(frameTypes.data, 3)
})
