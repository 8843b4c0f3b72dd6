// The stream ids and sizes of each frame type (RFC 9113 §6).
import { expect, test } from '@jest/globals'
import { checkFrame } from './check-frame.ts'
import { errorCodes, frameTypes } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'

type TypeName = keyof typeof frameTypes
const names = Object.keys(frameTypes) as TypeName[]

/** The error code with which a frame is rejected; `undefined` if it is accepted. */
function rejectionOf(name: TypeName, streamId: number, bytes: number): number | undefined {
  try {
    checkFrame({ type: frameTypes[name], flags: 0, streamId, payload: Buffer.alloc(bytes) })
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

const sizes: Readonly<Record<TypeName, number>> = {
  data: 100,
  headers: 100,
  priority: 5,
  rstStream: 4,
  settings: 6,
  pushPromise: 4,
  ping: 8,
  goaway: 8,
  windowUpdate: 4,
  continuation: 100,
}
const accepted = (streamId: number) =>
  names.filter((name) => rejectionOf(name, streamId, sizes[name]) === undefined)

test('accepts each frame type only on the connection, on a stream, or on both', () => {
  // The connection itself checks the streams of DATA and CONTINUATION.
  const ofConnection = ['data', 'settings', 'ping', 'goaway', 'windowUpdate', 'continuation']
  expect(accepted(0)).toEqual(ofConnection)
  const ofStream = ['data', 'headers', 'priority', 'rstStream', 'windowUpdate', 'continuation']
  expect(accepted(1)).toEqual(ofStream)
  expect(accepted(2)).toEqual(ofStream.filter((name) => name !== 'headers'))
})

test('rejects a frame on the wrong stream as a protocol error', () => {
  const wrong = names.filter((name) => rejectionOf(name, 0, sizes[name]) === errorCodes.protocol)
  expect(wrong).toEqual(['headers', 'priority', 'rstStream', 'pushPromise'])
})

test.each(['priority', 'rstStream', 'ping', 'windowUpdate'] as const)(
  'rejects %s with one byte less or more than its size',
  (name) => {
    const streamId = name === 'ping' ? 0 : 1
    const codes = [-1, 0, 1].map((more) => rejectionOf(name, streamId, sizes[name] + more))
    expect(codes).toEqual([errorCodes.frameSize, undefined, errorCodes.frameSize])
  },
)

test('GOAWAY has at least 8 bytes, other frame types have any size', () => {
  const codes = [0, 7, 8, 9, 1000].map((bytes) => rejectionOf('goaway', 0, bytes))
  const { frameSize } = errorCodes
  expect(codes).toEqual([frameSize, frameSize, undefined, undefined, undefined])
  expect([0, 1, 16_384].map((bytes) => rejectionOf('data', 1, bytes))).not.toContain(frameSize)
})
