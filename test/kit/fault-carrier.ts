// One direction of a connection through the fault proxy: forwards bytes in order, delayed or not at
// all, and stops reading while it buffers too many.
import type { Socket } from 'node:net'

/** Above it reading stops until the buffer is written. */
const HELD_BYTES_MAX = 1024 * 1024
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

/** Faults of one proxy, as its connections see them. */
export interface Faults {
  delayMs: number
  isBlack: boolean
  /** Whether this response is dropped. */
  takes(message: Buffer): boolean
}

/** What a direction is made of. */
export interface CarrierOptions {
  readonly from: Socket
  readonly to: Socket
  readonly faults: Faults
  readonly delayMs?: () => number
  readonly messageLength?: (bytes: Buffer) => number | undefined
  /** Whether this message, or these bytes, get lost. */
  readonly isLost: (message: Buffer) => boolean
}

/** Starts forwarding; returns a function that flushes the buffer if possible. */
export function createCarrier(options: CarrierOptions): () => void {
  const { from, to, faults, delayMs = () => 0, isLost } = options
  /** Bytes and when they are due; the end of the stream is none. */
  const held: { readonly bytes: Buffer | undefined; readonly dueMs: number }[] = []
  let heldBytes = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    for (let next = held[0]; next !== undefined; next = held[0]) {
      if (faults.isBlack || to.destroyed || to.writableNeedDrain) return
      const waitMs = next.dueMs - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(flush, Math.ceil(waitMs))
        return
      }
      held.shift()
      heldBytes -= next.bytes?.length ?? 0
      if (next.bytes === undefined) to.end()
      else to.write(next.bytes)
    }
    if (from.isPaused()) from.resume()
  }
  const hold = (bytes: Buffer | undefined) => {
    held.push({ bytes, dueMs: performance.now() + delayMs() })
    heldBytes += bytes?.length ?? 0
    if (heldBytes > HELD_BYTES_MAX) from.pause()
    flush()
  }
  const split = createSplitter(options.messageLength)
  from.on('data', (chunk: Buffer) => {
    for (const message of split(chunk)) if (!isLost(message)) hold(message)
  })
  from.on('end', () => {
    hold(undefined)
  })
  to.on('close', () => {
    clearTimeout(timer)
  })
  to.on('drain', flush)
  return flush
}

/** Cuts a stream into its messages. */
function createSplitter(
  messageLength: ((bytes: Buffer) => number | undefined) | undefined,
): (chunk: Buffer) => Buffer[] {
  if (messageLength === undefined) return (chunk) => [chunk]
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const messages: Buffer[] = []
    for (;;) {
      const length = messageLength(rest)
      if (length !== undefined && length > MESSAGE_BYTES_MAX) {
        throw new Error(`a message of ${String(length)} bytes is more than the proxy takes`)
      }
      if (length === undefined || rest.length < length) return messages
      messages.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  }
}
