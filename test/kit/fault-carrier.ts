// One direction of a connection through the fault proxy: forwards bytes in order, delays or drops
// them, and stops reading while its buffer is full.
import type { Socket } from 'node:net'

/** With more buffered bytes, reading pauses until the buffer is written. */
const BUFFER_BYTES_MAX = 1024 * 1024
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

/** The current faults of one proxy, shared by its connections. */
export interface Faults {
  delayMs: number
  isBlackHole: boolean
  /** Whether this response is dropped; counts it. */
  drops(message: Buffer): boolean
}

/** The two sockets of a direction, and its faults. */
export interface CarrierOptions {
  readonly from: Socket
  readonly to: Socket
  readonly faults: Faults
  readonly delayMs?: () => number
  readonly messageLength?: (bytes: Buffer) => number | undefined
  /** Whether this message, or this chunk, is dropped. */
  readonly isDropped: (message: Buffer) => boolean
}

/** Starts forwarding. Returns a function that writes the buffer as far as the faults allow. */
export function createCarrier(options: CarrierOptions): () => void {
  const { from, to, faults, delayMs = () => 0, isDropped } = options
  /** Bytes, or undefined for the end of the stream, and when they are due. */
  const buffer: { readonly bytes: Buffer | undefined; readonly dueMs: number }[] = []
  let bufferedBytes = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    for (let next = buffer[0]; next !== undefined; next = buffer[0]) {
      if (faults.isBlackHole || to.destroyed || to.writableNeedDrain) return
      const waitMs = next.dueMs - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(flush, Math.ceil(waitMs))
        return
      }
      buffer.shift()
      bufferedBytes -= next.bytes?.length ?? 0
      if (next.bytes === undefined) to.end()
      else to.write(next.bytes)
    }
    if (from.isPaused()) from.resume()
  }
  const enqueue = (bytes: Buffer | undefined) => {
    buffer.push({ bytes, dueMs: performance.now() + delayMs() })
    bufferedBytes += bytes?.length ?? 0
    if (bufferedBytes > BUFFER_BYTES_MAX) from.pause()
    flush()
  }
  const split = createSplitter(options.messageLength)
  from.on('data', (chunk: Buffer) => {
    for (const message of split(chunk)) if (!isDropped(message)) enqueue(message)
  })
  from.on('end', () => {
    enqueue(undefined)
  })
  to.on('close', () => {
    clearTimeout(timer)
  })
  to.on('drain', flush)
  return flush
}

/** Splits a stream into its messages. */
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
        throw new Error(`a message of ${String(length)} bytes exceeds the limit of the proxy`)
      }
      if (length === undefined || rest.length < length) return messages
      messages.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  }
}
