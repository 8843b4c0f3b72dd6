// Where the lines of the log go: written at once and in order while the reader keeps up, kept up to
// a bound while it does not, and lost beyond it: nobody who logs ever waits.
import type { Writable } from 'node:stream'
import { pause } from '../resilience/deadline.ts'

const KEPT_BYTES_MAX = 1_048_576
const WRITTEN_MS_MAX = 1000

/** What a logger writes to. */
export interface LogOutput {
  readonly write: (line: string) => void
}

/** Lines to `stream`; `onLost` is told how many were lost, once the reader goes on. */
export function createLogOutput(stream: Writable, onLost: (lines: number) => void): LogOutput {
  let lost = 0
  const tell = () => {
    const lines = lost
    lost = 0
    onLost(lines)
  }
  return {
    write: (line) => {
      if (stream.writableLength < KEPT_BYTES_MAX) stream.write(line)
      else if (++lost === 1) stream.once('drain', tell)
    },
  }
}

/** Resolves once all that was written has been taken, or its reader has had a second for it. */
export function written(stream: Writable): Promise<void> {
  const taken = new Promise<void>((resolve) => {
    stream.write('', () => {
      resolve()
    })
  })
  return Promise.race([taken, pause(WRITTEN_MS_MAX)])
}
