// gRPC messages from chunks of any size, compressed or not, and the memory that they use.
import { createHook } from 'node:async_hooks'
import { deflateSync, gzipSync } from 'node:zlib'
import { expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { MESSAGE_BYTES_MAX, MessageReader, wholeMessage } from './message-reader.ts'

const BUDGET = 10_000_000
const budgetOf = (left: number) => ({
  left,
  acquire(amount: number) {
    const isEnough = amount <= this.left
    if (isEnough) this.left -= amount
    return isEnough
  },
  release(amount: number) {
    this.left += amount
  },
})
const framed = (message: Buffer, flag = 0) => {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

test('messages are assembled from chunks of any size', () => {
  const message = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 6 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 400 })),
      (messages, sizes) => {
        const budget = budgetOf(BUDGET)
        const reader = new MessageReader(budget, 'identity')
        const bytes = Buffer.concat(messages.map((one) => framed(one)))
        const read: unknown[] = []
        for (let at = 0; at < bytes.length;) {
          const value = Number(sizes.next().value)
          expect(reader.add(bytes.subarray(at, at + value))).toBeUndefined()
          at += value
          for (let next = reader.next(); next !== undefined; next = reader.next()) read.push(next)
        }
        expect(read).toEqual(messages)
        expect(reader.bufferedBytes).toBe(0)
        reader.clear()
        expect(budget.left).toBe(BUDGET)
      },
    ),
  )
})

test('wholeMessage accepts exactly one uncompressed message', () => {
  const message = Buffer.from('hello')
  expect(wholeMessage(framed(message))).toEqual(message)
  expect(wholeMessage(framed(message, 1))).toBeUndefined()
  expect(wholeMessage(framed(message).subarray(0, 9))).toBeUndefined()
  expect(wholeMessage(Buffer.concat([framed(message), Buffer.alloc(1)]))).toBeUndefined()
  expect(wholeMessage(Buffer.alloc(4))).toBeUndefined()
})

test('compressed messages are decompressed up to a limit', async () => {
  const message = Buffer.from('hello '.repeat(100))
  const read = async (compressed: Buffer, encoding: 'gzip' | 'deflate' | 'identity', flag = 1) => {
    const reader = new MessageReader(budgetOf(BUDGET), encoding)
    reader.add(framed(compressed, flag))
    return await reader.next()
  }
  expect(await read(gzipSync(message), 'gzip')).toEqual(message)
  expect(await read(deflateSync(message), 'deflate')).toEqual(message)
  expect(await read(message, 'gzip')).toMatchObject({ code: 'INTERNAL' })
  expect(await read(message, 'identity')).toMatchObject({ code: 'INTERNAL' })
  expect(await read(message, 'gzip', 2)).toMatchObject({ code: 'INTERNAL' })
  const bomb = gzipSync(Buffer.alloc(MESSAGE_BYTES_MAX + 1))
  expect(await read(bomb, 'gzip')).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
})

test('at most 4 messages are decompressed concurrently, and the others wait', async () => {
  let started = 0
  const hook = createHook({ init: (_, type) => (started += type === 'ZLIB' ? 1 : 0) }).enable()
  try {
    const compressed = framed(deflateSync(Buffer.alloc(100_000, 'x')), 1)
    const decompressed = Array.from({ length: 100 }, () => {
      const reader = new MessageReader(budgetOf(BUDGET), 'deflate')
      reader.add(compressed)
      return Promise.resolve(reader.next())
    })
    const startedImmediately = started
    const lengths = (await Promise.all(decompressed)).map(
      (one) => Buffer.isBuffer(one) && one.length,
    )
    expect(new Set(lengths)).toEqual(new Set([100_000]))
    expect([startedImmediately - 1, started - 1]).toEqual([4, 100]) // not of deflateSync
  } finally {
    hook.disable()
  }
})

test('messages beyond the limits are rejected before they are buffered', () => {
  const reader = new MessageReader(budgetOf(BUDGET), 'identity')
  const prefix = framed(Buffer.alloc(0))
  prefix.writeUInt32BE(MESSAGE_BYTES_MAX + 1, 1)
  expect(reader.add(prefix)).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
  const budget = budgetOf(1024)
  const [first, second] = [
    new MessageReader(budget, 'identity'),
    new MessageReader(budget, 'identity'),
  ]
  expect(first.add(Buffer.alloc(900))).toBeUndefined()
  expect(second.add(Buffer.alloc(10))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
  first.clear()
  expect(second.add(Buffer.alloc(10))).toBeUndefined()
})

test('large buffers are reused without leaks between messages', () => {
  const read = (fill: string, bytes: number) => {
    const reader = new MessageReader(budgetOf(BUDGET), 'identity')
    const message = framed(Buffer.alloc(bytes, fill))
    reader.add(message.subarray(0, 10))
    reader.add(message.subarray(10))
    const read = reader.next()
    reader.clear()
    return read
  }
  const first = read('a', 60_000)
  const allocated = jest.spyOn(Buffer, 'allocUnsafeSlow')
  for (let i = 0; i < 100; i += 1) void read('b', 50_000)
  const large = allocated.mock.calls.filter(([bytes]) => bytes >= 16_384)
  allocated.mockRestore()
  expect(large).toEqual([])
  expect(first).toEqual(Buffer.alloc(60_000, 'a'))
  expect(read('c', 59_000)).toEqual(Buffer.alloc(59_000, 'c'))
})

test('the memory kept for reuse is bounded', () => {
  const readers = Array.from({ length: 8 }, () => new MessageReader(budgetOf(BUDGET), 'identity'))
  const fill = () => {
    for (const reader of readers) expect(reader.add(Buffer.alloc(3_000_000))).toBeUndefined()
    for (const reader of readers) reader.clear()
  }
  fill()
  const allocated = jest.spyOn(Buffer, 'allocUnsafeSlow')
  fill()
  const { length } = allocated.mock.calls
  allocated.mockRestore()
  // At most 16 MiB are kept: 4 of these buffers, or 3 and smaller ones of earlier tests.
  expect([4, 5]).toContain(length)
})
