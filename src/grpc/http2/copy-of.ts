// Copies bytes that outlive the chunk they were received in.

/** No bytes. */
export const EMPTY: Buffer = Buffer.alloc(0)

/**
 * A copy in its own memory, with `more` appended. A slice of a chunk, or of the pool from which
 * Buffer.from and Buffer.concat allocate, would keep up to 64 KiB that no budget counts.
 */
export function copyOf(bytes: Buffer, more = EMPTY): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length + more.length)
  bytes.copy(copy)
  more.copy(copy, bytes.length)
  return copy
}
