// Field blocks in several frames: the exact bounds of their bytes, frames, time and memory.
import { describe, expect, test } from '@jest/globals'
import { countedBudget } from '../../../test/kit/ratelimit/http2-connection.ts'
import { FieldBlockAssembler, unpadded } from './field-block-assembler.ts'
import { errorCodes, frameTypes } from './frames.ts'

const [END_STREAM, END_HEADERS, PADDED, PRIORITY] = [1, 4, 8, 32]

const headers = (bytes: number, flags = 0, streamId = 1) => ({
  ...{ type: frameTypes.headers, flags, streamId },
  payload: Buffer.alloc(bytes, 'h'),
})
const continuation = (bytes: number, flags = 0, streamId = 1) => ({
  ...{ type: frameTypes.continuation, flags, streamId },
  payload: Buffer.alloc(bytes, 'c'),
})
const codeOf = (code: number) => expect.objectContaining({ code })

function openBlocks(max = Infinity) {
  const budget = countedBudget(max)
  return { budget, blocks: new FieldBlockAssembler(budget) }
}

describe('a block', () => {
  test('in one frame is complete, and needs no memory', () => {
    const { budget, blocks } = openBlocks(0)
    const block = blocks.start(headers(3, END_HEADERS), 0)
    expect(block).toEqual({ streamId: 1, endStream: false, bytes: Buffer.from('hhh') })
    expect(blocks.start(headers(0, END_HEADERS | END_STREAM, 3), 0)).toMatchObject({
      streamId: 3,
      endStream: true,
    })
    expect(budget.held).toBe(0)
    blocks.checkOrder(frameTypes.data)
  })

  test.each([0, END_STREAM])('in several frames keeps their order and the flags %d', (flags) => {
    const { budget, blocks } = openBlocks()
    expect(blocks.start(headers(2, flags), 0)).toBeUndefined()
    expect(blocks.continue(continuation(3))).toBeUndefined()
    expect(budget.held).toBe(5)
    const block = blocks.continue(continuation(1, END_HEADERS))
    const endStream = flags === END_STREAM
    expect(block).toEqual({ streamId: 1, endStream, bytes: Buffer.from('hhcccc') })
    expect(budget.held).toBe(0)
    blocks.checkOrder(frameTypes.headers)
    expect(() => blocks.continue(continuation(1))).toThrow(codeOf(errorCodes.protocol))
  })

  test('that is incomplete allows only CONTINUATION of its stream', () => {
    const { blocks } = openBlocks()
    blocks.start(headers(2), 0)
    blocks.checkOrder(frameTypes.continuation)
    for (const type of [frameTypes.data, frameTypes.headers, frameTypes.ping]) {
      expect(() => {
        blocks.checkOrder(type)
      }).toThrow(codeOf(errorCodes.protocol))
    }
    expect(() => blocks.continue(continuation(1, END_HEADERS, 3))).toThrow(
      codeOf(errorCodes.protocol),
    )
  })
})

describe('a block in several frames', () => {
  test('has at most 32 KiB', () => {
    const start = () => {
      const { blocks } = openBlocks()
      blocks.start(headers(16_384), 0)
      blocks.continue(continuation(16_383))
      return blocks
    }
    expect(start().continue(continuation(1, END_HEADERS))?.bytes).toHaveLength(32 * 1024)
    const blocks = start()
    expect(() => blocks.continue(continuation(2, END_HEADERS))).toThrow(
      codeOf(errorCodes.enhanceYourCalm),
    )
  })

  test('has at most 16 frames', () => {
    const { blocks } = openBlocks()
    for (let times = 0; times < 2; times += 1) {
      blocks.start(headers(1), 0)
      for (let frames = 2; frames <= 15; frames += 1) blocks.continue(continuation(1))
      expect(blocks.continue(continuation(1, END_HEADERS))?.bytes).toHaveLength(16)
    }
    blocks.start(headers(1), 0)
    for (let frames = 2; frames <= 16; frames += 1) blocks.continue(continuation(1))
    expect(() => blocks.continue(continuation(0, END_HEADERS))).toThrow(
      codeOf(errorCodes.enhanceYourCalm),
    )
  })

  test('is timed out after 5 s, unless it is complete', () => {
    const { blocks } = openBlocks()
    expect(blocks.isTimedOut(1e9)).toBe(false)
    blocks.start(headers(1), 1000)
    expect([blocks.isTimedOut(6000), blocks.isTimedOut(6001)]).toEqual([false, true])
    blocks.continue(continuation(1, END_HEADERS))
    expect(blocks.isTimedOut(1e9)).toBe(false)
  })
})

test('keeps its fragments in own memory', () => {
  const { blocks } = openBlocks()
  const first = headers(2)
  const second = continuation(2)
  blocks.start(first, 0)
  first.payload.fill('x')
  blocks.continue(second)
  second.payload.fill('x')
  const block = blocks.continue(continuation(0, END_HEADERS))
  expect(block?.bytes).toEqual(Buffer.from('hhcc'))
})

test('rejects fragments that the budget does not allow, and releases the others', () => {
  const { budget, blocks } = openBlocks(5)
  expect(() => blocks.start(headers(6), 0)).toThrow(codeOf(errorCodes.enhanceYourCalm))
  expect(budget.held).toBe(0)
  blocks.start(headers(3), 0)
  blocks.continue(continuation(2))
  expect(() => blocks.continue(continuation(1))).toThrow(codeOf(errorCodes.enhanceYourCalm))
  for (let times = 0; times < 2; times += 1) blocks.clear()
  expect(budget.held).toBe(0)
  blocks.checkOrder(frameTypes.data)
})

describe('the payload without padding and priority', () => {
  const bytesOf = (flags: number, payload: readonly number[], skipped = 0) => [
    ...unpadded({ ...headers(0, flags), payload: Buffer.from(payload) }, skipped),
  ]

  test.each([
    [[1, 2], 0, [1, 2]],
    [[0, 1, 2], PADDED, [1, 2]],
    [[1, 1, 2], PADDED, [1]],
    [[2, 1, 2], PADDED, []],
    [[0], PADDED, []],
  ])('of %j with the flags %d is %j', (payload, flags, expected) => {
    expect(bytesOf(flags, payload)).toEqual(expected)
  })

  test.each([[[3, 1, 2]], [[1]], [[]]])('of %j is rejected if it is padded', (payload) => {
    expect(() => bytesOf(PADDED, payload)).toThrow(codeOf(errorCodes.protocol))
  })

  test('starts after the 5 bytes of a priority', () => {
    expect(bytesOf(0, [0, 0, 0, 0, 0], 5)).toEqual([])
    expect(() => bytesOf(0, [0, 0, 0, 0], 5)).toThrow(codeOf(errorCodes.protocol))
    const { blocks } = openBlocks()
    const payload = Buffer.from([2, 0, 0, 0, 0, 0, 65, 66, 0, 0])
    const block = blocks.start({ ...headers(0, END_HEADERS | PADDED | PRIORITY), payload }, 0)
    expect(block?.bytes).toEqual(Buffer.from('AB'))
  })
})
