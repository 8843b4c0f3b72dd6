// Received bytes are split into frames at any position; incomplete frames are kept in own memory.
import { describe, expect, test } from '@jest/globals'
import { FrameReader, readUint32 } from './frame-reader.ts'
import { errorCodes } from './frames.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const frame = (stream: number, payload: Buffer) => {
  const header = Buffer.from([0, 0, 0, 6, 1, 0, 0, 0, 0])
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}

/** A reader, and what it has read so far; it stops after each frame of the stream `stopAt`. */
function openReader({ stopAt = -1, hasPreface = true } = {}) {
  const reader = new FrameReader()
  const done: string[] = []
  const read = (chunk?: Buffer) => {
    if (chunk !== undefined) reader.add(chunk)
    return reader.read(({ type, flags, streamId, payload }) => {
      done.push(`${type} ${flags} ${streamId} ${payload.toString('latin1')}`)
      return streamId !== stopAt
    })
  }
  if (hasPreface) read(Buffer.from(PREFACE))
  return { reader, done, read }
}

describe('the preface', () => {
  test('may arrive in any chunks, and may be followed by a frame', () => {
    const bytes = Buffer.concat([PREFACE, frame(1, Buffer.from('a')), frame(3, Buffer.from('b'))])
    for (const size of [1, 2, 23, 24, 25, 33, 34, 35, 100]) {
      const { reader, done, read } = openReader({ hasPreface: false })
      for (let at = 0; at < bytes.length; at += size) {
        expect(read(bytes.subarray(at, at + size))).toBe(false)
        expect(reader.hasPreface).toBe(at + size >= PREFACE.length)
      }
      expect([done, reader.length]).toEqual([['6 1 1 a', '6 1 3 b'], 0])
    }
  })

  test('is rejected at its first invalid byte', () => {
    const { done, read } = openReader({ hasPreface: false })
    expect(read(PREFACE.subarray(0, 10))).toBe(false)
    expect(() => read(Buffer.from('x'))).toThrow(
      expect.objectContaining({ code: errorCodes.protocol }),
    )
    expect(done).toEqual([])
  })
})

test('a frame has at most 16,384 bytes; a longer one is rejected before it is complete', () => {
  const { done, read } = openReader()
  read(frame(1, Buffer.alloc(16_384, 'x')))
  expect(done).toEqual([`6 1 1 ${'x'.repeat(16_384)}`])
  expect(() => read(Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1]))).toThrow(
    expect.objectContaining({ code: errorCodes.frameSize }),
  )
  const second = openReader()
  expect(() => second.read(Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 1]))).toThrow('MAX_FRAME_SIZE')
})

test('the reserved bit of a stream id is ignored', () => {
  const { done, read } = openReader()
  read(frame(0x80000005, Buffer.alloc(0)))
  read(frame(0x7fffffff, Buffer.alloc(0)))
  expect(done).toEqual(['6 1 5 ', '6 1 2147483647 '])
})

test('reading stops after a frame for which the handler returns false', () => {
  const { reader, done, read } = openReader({ stopAt: 3 })
  const [one, two, three] = ['a', 'b', 'c'].map((byte, i) => frame(2 * i + 1, Buffer.from(byte)))
  const bytes = Buffer.concat([one, two, three].filter((each) => each !== undefined))
  expect(read(bytes)).toBe(true)
  expect([done, reader.length]).toEqual([['6 1 1 a', '6 1 3 b'], 10])
  expect(read()).toBe(false)
  expect([done.at(-1), reader.length]).toEqual(['6 1 5 c', 0])
  expect(read(bytes.subarray(10, 20))).toBe(false) // no bytes remain
  expect([done.length, reader.length]).toEqual([4, 0])
  expect(read()).toBe(false)
})

test('a payload is valid only until the next frame', () => {
  const { reader } = openReader()
  reader.add(frame(1, Buffer.from('a')))
  const kept: { readonly payload: Buffer }[] = []
  reader.read((one) => kept.push(one) > 0)
  expect(kept[0]?.payload).toHaveLength(0)
})

test('dropped bytes are not read', () => {
  const { reader, done, read } = openReader()
  read(frame(1, Buffer.from('abc')).subarray(0, 11))
  expect(reader.length).toBe(11)
  reader.clear()
  expect(reader.length).toBe(0)
  read(frame(3, Buffer.from('d')))
  expect(done).toEqual(['6 1 3 d'])
})

describe('the bytes of an incomplete frame are kept in own memory', () => {
  const whole = frame(1, Buffer.from('abc'))
  const others = {
    'alone in its chunk': [Buffer.alloc(0), -1],
    'after another frame': [frame(3, Buffer.from('x')), -1],
    'after a frame that stops the reading': [frame(5, Buffer.from('x')), 5],
  } as const

  test.each(Object.entries(others))('%s', (_, [before, stopAt]) => {
    const { reader, done, read } = openReader({ stopAt })
    const chunk = Buffer.concat([before, whole.subarray(0, 10)])
    if (read(chunk)) read()
    chunk.fill(0) // the memory is used for other bytes
    const second = Buffer.from(whole.subarray(10, 11))
    read(second)
    second.fill(0)
    expect(reader.length).toBe(11)
    read(whole.subarray(11))
    expect([done.at(-1), reader.length]).toEqual(['6 1 1 abc', 0])
  })
})

test('a number of four bytes has no sign', () => {
  const bytes = Buffer.from([0, 0xff, 0xfe, 0xfd, 0xfc, 1])
  expect(readUint32(bytes, 1)).toBe(0xfffefdfc)
  expect(readUint32(bytes, 2)).toBe(0xfefdfc01)
})
