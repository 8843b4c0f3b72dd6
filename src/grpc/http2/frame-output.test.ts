// The bytes of written frames, how they are collected for the socket, and the count of output that
// the client has not read.
import { describe, expect, jest, test } from '@jest/globals'
import { countedBudget, openPipe, settle } from '../../../test/kit/ratelimit/http2-connection.ts'
import { FrameOutput } from './frame-output.ts'
import { errorCodes, MAX_STREAM_ID, sentFrames } from './frames.ts'

const PING_BYTES = 9 + 8
const INITIAL_BYTES = 1024

function openOutput({ highWaterMark = 1024 * 1024, max = Infinity } = {}) {
  const pipe = openPipe(highWaterMark)
  const budget = countedBudget(max)
  const output = new FrameOutput(pipe.duplex, budget)
  return {
    ...{ ...pipe, output, budget },
    ping: (byte = 7) => {
      output.frame(sentFrames.ping, 0, Buffer.alloc(8, byte))
    },
    data: (bytes: number, byte = 7) => {
      output.frame(sentFrames.data, 1, Buffer.alloc(bytes, byte))
    },
    hex: () => {
      output.flush()
      return Buffer.concat(pipe.chunks).toString('hex')
    },
  }
}

describe('the bytes of', () => {
  test('a frame: its length with 24 bits, its type and flags, and its stream id', () => {
    const { output, hex } = openOutput()
    output.frame(sentFrames.trailers, MAX_STREAM_ID, Buffer.from('0a0b', 'hex'))
    expect(hex()).toBe('000002' + '01' + '05' + '7fffffff' + '0a0b')
  })

  test.each([0, 1, 31, 32, 33, 255, 256, 0x010203])('a frame with a payload of %d bytes', (n) => {
    const { output, hex } = openOutput()
    const payload = Buffer.alloc(n, 0xab)
    output.frame(sentFrames.data, 0x01020304, payload)
    const length = n.toString(16).padStart(6, '0')
    expect(hex() === `${length}000001020304${payload.toString('hex')}`).toBe(true)
  })

  test('a message: not compressed, with a length of 32 bits', () => {
    const { output, hex } = openOutput()
    output.message(1, Buffer.alloc(0x0102, 0xcd))
    expect(hex()).toBe('000107' + '00' + '00' + '00000001' + '0000000102' + 'cd'.repeat(0x0102))
  })

  test('RST_STREAM, WINDOW_UPDATE and SETTINGS', () => {
    const { output, hex } = openOutput()
    output.reset(3, errorCodes.enhanceYourCalm)
    output.windowUpdate(5, 0x01020304)
    output.acknowledgeSettings()
    output.settings([
      [3, 1000],
      [6, 0xfffefdfc],
    ])
    const frames = [
      '000004' + '03' + '00' + '00000003' + '0000000b',
      '000004' + '08' + '00' + '00000005' + '01020304',
      '000000' + '04' + '01' + '00000000',
      '00000c' + '04' + '00' + '00000000' + '0003000003e8' + '0006fffefdfc',
    ]
    expect(hex()).toBe(frames.join(''))
  })

  test('GOAWAY: the lowest last stream id so far, the code, and 128 bytes of the reason', () => {
    const { output, frames } = openOutput()
    output.goaway(MAX_STREAM_ID, errorCodes.noError)
    output.goaway(5, errorCodes.protocol, 'x')
    output.goaway(7, errorCodes.noError, 'y'.repeat(128))
    output.goaway(3, errorCodes.noError, 'z'.repeat(129))
    output.flush()
    const sent = frames().map(({ payload }) => payload)
    expect(sent.map((payload) => payload.readUInt32BE())).toEqual([MAX_STREAM_ID, 5, 5, 3])
    expect(sent.map((payload) => payload.readUInt32BE(4))).toEqual([0, errorCodes.protocol, 0, 0])
    const reasons = sent.map((payload) => payload.toString('latin1', 8))
    expect(reasons).toEqual(['', 'x', 'y'.repeat(128), 'z'.repeat(128)])
  })
})

describe('frames are collected', () => {
  test('and written together in the next phase of the event loop', async () => {
    const { chunks, ping } = openOutput()
    for (let i = 0; i < 100; i += 1) ping(i)
    expect(chunks).toEqual([])
    await settle()
    expect(chunks.map(({ length }) => length)).toEqual([100 * PING_BYTES])
    expect(chunks[0]?.subarray(-8)).toEqual(Buffer.alloc(8, 99))
    ping()
    await settle()
    expect(chunks.map(({ length }) => length)).toEqual([100 * PING_BYTES, PING_BYTES])
  })

  test('up to 64 KiB, and flushed before they exceed it', () => {
    const { chunks, data, output, ping } = openOutput()
    for (let i = 0; i < 4; i += 1) data(16_384 - 9)
    expect(chunks).toEqual([])
    ping()
    expect(chunks.map(({ length }) => length)).toEqual([64 * 1024])
    output.flush()
    expect(chunks.map(({ length }) => length)).toEqual([64 * 1024, PING_BYTES])
  })

  test('and flushed at most once', async () => {
    const { duplex, chunks, output, ping } = openOutput()
    const write = jest.spyOn(duplex, 'write')
    output.flush()
    expect(write).not.toHaveBeenCalled()
    ping()
    output.flush()
    output.flush()
    await settle()
    expect(chunks.map(({ length }) => length)).toEqual([PING_BYTES])
    expect(write).toHaveBeenCalledTimes(1)
  })
})

describe('flushed frames are', () => {
  test.each([100, 4000, 5000])('not changed by later ones after a flush of %d bytes', (n) => {
    const { chunks, data, output } = openOutput()
    data(n, 1)
    output.flush()
    data(n, 2)
    output.flush()
    expect(chunks.map((chunk) => chunk.subarray(9).equals(Buffer.alloc(n, 1)))).toEqual([
      true,
      false,
    ])
  })

  test('copied into memory of their own size while their buffer has at most 4 KiB', () => {
    const { chunks, data, output } = openOutput()
    const memory = () => {
      output.flush()
      const chunk = chunks.at(-1)
      return [chunk?.length, chunk?.buffer.byteLength]
    }
    data(100)
    expect(memory()).toEqual([109, 109])
    data(1500 - 9)
    data(600) // doubles the buffer to 4 KiB
    expect(memory()).toEqual([2109, 2109])
    data(5000) // doubles the buffer to 8 KiB, which is passed to the socket
    expect(memory()).toEqual([5009, 8192])
    data(100)
    expect(memory()).toEqual([109, 109])
  })

  test('dropped if the socket is closed for writing', async () => {
    const { duplex, chunks, ping } = openOutput()
    const failed = jest.fn()
    duplex.on('error', failed)
    duplex.end()
    ping()
    await settle()
    expect([chunks, failed.mock.calls]).toEqual([[], []])
    duplex.destroy()
  })
})

describe('while an earlier write is pending', () => {
  test('one more write is queued, and later frames are collected until it completes', async () => {
    const { duplex, ping, reads, frames } = openOutput()
    const write = jest.spyOn(duplex, 'write')
    reads(false)
    for (let i = 1; i <= 10; i += 1) {
      ping(i)
      await settle()
    }
    expect(write).toHaveBeenCalledTimes(2)
    reads(true)
    await settle()
    expect(write).toHaveBeenCalledTimes(3)
    expect(frames().map(({ payload }) => payload[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    ping(11)
    await settle()
    expect(frames()).toHaveLength(11)
  })

  test('a frame that is collected just before it completes is written, too', async () => {
    const { ping, reads, frames } = openOutput()
    reads(false)
    for (let i = 1; i <= 2; i += 1) {
      ping(i)
      await settle()
    }
    ping(3)
    reads(true)
    await settle()
    expect(frames().map(({ payload }) => payload[0])).toEqual([1, 2, 3])
  })

  test('the unread bytes and the buffer are counted, until the client has read them', async () => {
    const { output, budget, ping, reads } = openOutput()
    output.updateBudget()
    expect(budget.held).toBe(0)
    reads(false)
    ping()
    await settle()
    output.updateBudget()
    expect(budget.held).toBe(PING_BYTES + INITIAL_BYTES)
    ping()
    await settle()
    for (let times = 0; times < 2; times += 1) output.updateBudget()
    expect(budget.held).toBe(2 * PING_BYTES + INITIAL_BYTES)
    reads(true)
    await settle()
    output.updateBudget()
    expect(budget.held).toBe(0)
  })
})

describe('a socket whose buffer is full', () => {
  async function openFull(max = Infinity) {
    const opened = openOutput({ highWaterMark: 2 * PING_BYTES, max })
    opened.reads(false)
    opened.ping()
    await settle()
    expect([opened.output.isFull, opened.budget.held]).toEqual([false, 0])
    opened.ping()
    await settle()
    return opened
  }
  const FULL_BYTES = 2 * PING_BYTES + INITIAL_BYTES

  test('is reported, and counted immediately, until it is drained', async () => {
    const { output, budget } = await openFull()
    expect([output.isFull, budget.held]).toEqual([true, FULL_BYTES])
    output.drained()
    output.drained()
    expect([output.isFull, budget.held]).toEqual([false, 0])
  })

  test('is destroyed if the budget does not allow its bytes', async () => {
    const exact = await openFull(FULL_BYTES)
    expect([exact.duplex.destroyed, exact.budget.held]).toEqual([false, FULL_BYTES])
    const exceeds = await openFull(FULL_BYTES - 1)
    expect([exceeds.duplex.destroyed, exceeds.budget.held]).toEqual([true, 0])
  })

  test('is kept while its bytes do not increase, even if the budget is exhausted', async () => {
    const { output, budget, duplex } = await openFull(FULL_BYTES)
    budget.max = 0
    output.updateBudget()
    expect([duplex.destroyed, budget.held]).toEqual([false, FULL_BYTES])
  })

  test('is not counted once it is destroyed', async () => {
    const { output, budget, duplex } = await openFull()
    duplex.destroy()
    output.drained()
    output.updateBudget()
    expect(budget.held).toBe(0)
  })
})
