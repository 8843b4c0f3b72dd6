// Writes log lines immediately and in order, buffers them up to a bound while the reader does not
// keep up, and drops them beyond that bound: logging never blocks.
import type { Writable } from 'node:stream'
import { pause } from '../resilience/deadline.ts'

const BUFFERED_BYTES_MAX = 1_048_576
const FLUSH_MS_MAX = 1000

/** The output of a logger. */
export interface LogOutput {
  readonly write: (line: string) => void
}

/** Writes to `stream`; calls `onDropped` with the number of dropped lines when it drains. */
export function createLogOutput(stream: Writable, onDropped: (lines: number) => void): LogOutput {
  let dropped = 0
  const report = () => {
    const lines = dropped
    dropped = 0
    onDropped(lines)
  }
  return {
    write: (line) => {
      if (stream.writableLength < BUFFERED_BYTES_MAX) stream.write(line)
      else if (++dropped === 1) stream.once('drain', report)
    },
  }
}

/** Resolves once the system has accepted everything written so far, or after one second. */
export function flushed(stream: Writable): Promise<void> {
  const accepted = new Promise<void>((resolve) => {
    stream.write('', () => {
      resolve()
    })
  })
  return Promise.race([accepted, pause(FLUSH_MS_MAX)])
}
