// Messages of gRPC from parts of any size, packed or not, and what is kept of them.
import { createHook } from 'node:async_hooks'
import { deflateSync, gzipSync } from 'node:zlib'
import { expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { MESSAGE_BYTES_MAX, MessageReader, wholeMessage } from './message-reader.ts'

const BUDGET = 10_000_000
const budgetOf = (left: number) => ({
  left,
  take(amount: number) {
    const isEnough = amount <= this.left
    if (isEnough) this.left -= amount
    return isEnough
  },
  give(amount: number) {
    this.left += amount
  },
})
const framed = (message: Buffer, flag = 0) => {
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

test('messages come out as they went in, however they are cut', () => {
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
        expect(reader.rest).toBe(0)
        reader.clear()
        expect(budget.left).toBe(BUDGET)
      },
    ),
  )
})

test('one whole message is seen at once, and nothing else', () => {
  const message = Buffer.from('hello')
  expect(wholeMessage(framed(message))).toEqual(message)
  expect(wholeMessage(framed(message, 1))).toBeUndefined()
  expect(wholeMessage(framed(message).subarray(0, 9))).toBeUndefined()
  expect(wholeMessage(Buffer.concat([framed(message), Buffer.alloc(1)]))).toBeUndefined()
  expect(wholeMessage(Buffer.alloc(4))).toBeUndefined()
})

test('packed messages are unpacked, to a bound', async () => {
  const message = Buffer.from('hello '.repeat(100))
  const read = async (packed: Buffer, packing: 'gzip' | 'deflate' | 'identity', flag = 1) => {
    const reader = new MessageReader(budgetOf(BUDGET), packing)
    reader.add(framed(packed, flag))
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

test('few messages are unpacked at once, and each in its turn', async () => {
  let begun = 0
  const hook = createHook({ init: (_, type) => (begun += type === 'ZLIB' ? 1 : 0) }).enable()
  try {
    const packed = framed(deflateSync(Buffer.alloc(100_000, 'x')), 1)
    const unpacked = Array.from({ length: 100 }, () => {
      const reader = new MessageReader(budgetOf(BUDGET), 'deflate')
      reader.add(packed)
      return Promise.resolve(reader.next())
    })
    const begunAtOnce = begun
    const lengths = (await Promise.all(unpacked)).map((one) => Buffer.isBuffer(one) && one.length)
    expect(new Set(lengths)).toEqual(new Set([100_000]))
    expect([begunAtOnce - 1, begun - 1]).toEqual([4, 100]) // one to pack
  } finally {
    hook.disable()
  }
})

test('too much is refused before it is kept', () => {
  const reader = new MessageReader(budgetOf(BUDGET), 'identity')
  const head = framed(Buffer.alloc(0))
  head.writeUInt32BE(MESSAGE_BYTES_MAX + 1, 1)
  expect(reader.add(head)).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
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

test('a large buffer is reused, and no message contains what another one left in it', () => {
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

test('what is kept for reuse has its bound', () => {
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
  // Of eight buffers of 4 MiB, 16 MiB are kept, with what tests before have left.
  expect([4, 5]).toContain(length)
})
