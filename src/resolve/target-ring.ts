// Targets as bytes in a ring buffer: a new target overwrites the oldest one, whose position becomes
// invalid.

/** A ring of targets. Positions count all bytes ever written: they do not restart at 0. */
export interface TargetRing {
  /**
   * Writes a target of visible ASCII; returns its position. `obsolete` is the position of a target
   * of the same length that is no longer needed: the new target takes its place, unless the ring
   * would soon overwrite that place.
   */
  write(target: string, obsolete: number | undefined): number
  /** Whether the target at a position has not been overwritten. */
  isPresent(position: number): boolean
  read(position: number, length: number): string
}

const INITIAL_BYTES = 4096

/** Creates an empty ring, which grows up to `bytesMax`, a power of two. */
export function createTargetRing(bytesMax: number): TargetRing {
  let bytes = Buffer.alloc(Math.min(INITIAL_BYTES, bytesMax))
  /** Bytes ever written, including those skipped at the end of the buffer. */
  let written = 0
  const isPresent = (position: number) => position >= written - bytes.length
  const reserve = (length: number) => {
    while (written + length > bytes.length && bytes.length < bytesMax) {
      const larger = Buffer.alloc(bytes.length * 2)
      bytes.copy(larger)
      bytes.buffer.transfer(0) // frees it immediately
      bytes = larger
    }
    const left = bytes.length - (written % bytes.length)
    if (length > left) written += left // a target never wraps around
  }
  return {
    isPresent,
    write(target, obsolete) {
      const { length } = target
      let position = obsolete
      if (position === undefined || position < written - bytes.length / 2) {
        reserve(length)
        position = written
        written += length
      }
      bytes.write(target, position % bytes.length, length, 'latin1')
      return position
    },
    read(position, length) {
      const start = position % bytes.length
      return bytes.toString('latin1', start, start + length)
    },
  }
}
