// The client's SETTINGS: the exact bounds of their number and values (RFC 9113 §6.5).
import { expect, test } from '@jest/globals'
import { errorCodes, frameTypes, settingNames } from './frames.ts'
import { ProtocolError } from './protocol-error.ts'
import { isSettings, readSettings } from './read-settings.ts'

const ACK = 1

function frameOf(payload: Buffer, flags = 0) {
  return { type: frameTypes.settings, flags, streamId: 0, payload }
}

function encode(settings: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * 6)
  for (const [i, [name, value]] of settings.entries()) {
    payload.writeUInt16BE(name, i * 6)
    payload.writeUInt32BE(value, i * 6 + 2)
  }
  return payload
}

/** The error code with which a frame is rejected; `undefined` if it is accepted. */
function rejectionOf(payload: Buffer, flags = 0): number | undefined {
  try {
    readSettings(frameOf(payload, flags))
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

test('the first frame must be SETTINGS without ACK', () => {
  const payload = Buffer.alloc(0)
  expect(isSettings(frameOf(payload))).toBe(true)
  expect(isSettings(frameOf(payload, 2))).toBe(true)
  expect(isSettings(frameOf(payload, ACK))).toBe(false)
  expect(isSettings({ ...frameOf(payload), type: frameTypes.ping })).toBe(false)
})

test('returns all settings in order, with names of 16 and values of 32 bits', () => {
  const settings = [
    [settingNames.initialWindowSize, 1],
    [settingNames.initialWindowSize, 2],
    [0x0104, 2 ** 32 - 1],
  ] as const
  expect(readSettings(frameOf(encode(settings)))).toEqual(settings)
  expect(readSettings(frameOf(Buffer.alloc(0)))).toEqual([])
})

test('returns undefined for an ack, which has no payload', () => {
  expect(readSettings(frameOf(Buffer.alloc(0), ACK))).toBeUndefined()
  expect(rejectionOf(Buffer.alloc(6), ACK)).toBe(errorCodes.frameSize)
})

test('rejects a payload that is not a multiple of 6 bytes', () => {
  const rejected = [1, 5, 6, 7, 12].map((bytes) => rejectionOf(Buffer.alloc(bytes)))
  const { frameSize } = errorCodes
  expect(rejected).toEqual([frameSize, frameSize, undefined, frameSize, undefined])
})

test('accepts 32 settings in one frame', () => {
  const settings = (count: number) => encode(Array.from({ length: count }, () => [99, 1] as const))
  expect(rejectionOf(settings(32))).toBeUndefined()
  expect(rejectionOf(settings(33))).toBe(errorCodes.enhanceYourCalm)
})

const ACCEPTED = 'accepted'
const bounds: readonly (readonly [keyof typeof settingNames, number, number | string])[] = [
  ['initialWindowSize', 0, ACCEPTED],
  ['initialWindowSize', 2 ** 31 - 1, ACCEPTED],
  ['initialWindowSize', 2 ** 31, errorCodes.flowControl],
  ['enablePush', 0, ACCEPTED],
  ['enablePush', 1, ACCEPTED],
  ['enablePush', 2, errorCodes.protocol],
  ['maxFrameSize', 16_383, errorCodes.protocol],
  ['maxFrameSize', 16_384, ACCEPTED],
  ['maxFrameSize', 2 ** 24 - 1, ACCEPTED],
  ['maxFrameSize', 2 ** 24, errorCodes.protocol],
  ['headerTableSize', 2 ** 32 - 1, ACCEPTED],
  ['maxConcurrentStreams', 0, ACCEPTED],
  ['maxHeaderListSize', 2 ** 31, ACCEPTED],
]

test.each(bounds)('%s with the value %d: accepted, or the error code', (name, value, expected) => {
  expect(rejectionOf(encode([[settingNames[name], value]])) ?? ACCEPTED).toBe(expected)
})
