// What large messages, and messages of reflection, spend of the abuse budget of their connection.
import { expect, test } from '@jest/globals'
import { openStream, settle } from '../../test/kit/ratelimit/http2-connection.ts'
import { createReflection } from './reflection.ts'
import { UnaryCall } from './unary-call.ts'

const KIBIBYTE = 1024

/** A message of this size, as gRPC frames it. */
function messageOf(bytes: number): Buffer {
  const message = Buffer.alloc(5 + bytes)
  message.writeUInt32BE(bytes, 1)
  return message
}
const spentOf = (events: readonly string[]) => events.filter((event) => event.startsWith('spend'))

test.each([
  [32 * KIBIBYTE - 1, 0],
  [32 * KIBIBYTE, 1],
  [100 * KIBIBYTE, 3],
])('a message of %d bytes spends %d units, also if it is successful', async (bytes, units) => {
  for (const chunks of [1, 3]) {
    const { stream, events } = openStream()
    const method = () => Promise.resolve({ code: 'OK', message: Buffer.alloc(0) } as const)
    const onDefect = (error: unknown) => {
      throw error
    }
    stream.listener = new UnaryCall({ method, onDefect }, stream, 'identity')
    const message = messageOf(bytes)
    const size = Math.ceil(message.length / chunks)
    for (let at = 0; at < message.length; at += size)
      stream.listener.receive(message.subarray(at, at + size), at + size >= message.length)
    await settle()
    expect([spentOf(events), events.includes('responded')]).toEqual([[`spend ${units}`], true])
  }
})

test.each([
  ['a valid message', Buffer.from([0x3a, 0])],
  ['a malformed message', Buffer.from([0xff])],
])('%s of reflection spends 10 units', (_name, bytes) => {
  for (const open of createReflection().values()) {
    const { stream, events } = openStream()
    open(stream).message(bytes)
    expect(spentOf(events)).toEqual(['spend 10'])
  }
})
