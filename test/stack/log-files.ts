// The logs of the stack's processes, one file each in one folder, and a reader of new lines.
import type { ChildProcess } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

const READ_EVERY_MS = 200
const READ_BYTES_MAX = 1024 * 1024

/** The log of one component. */
export interface LogFile {
  readonly name: string
  readonly path: string
}

/** Path of the log of the component `name`. */
export function logFileOf(folder: string, name: string): string {
  return join(folder, `${name}.log`)
}

/** Returns a function that appends the output of a process to its log file. */
export function logToFile(folder: string, name: string): (child: ChildProcess) => void {
  return (child) => {
    const file = createWriteStream(logFileOf(folder, name), { flags: 'a' })
    file.on('error', () => undefined) // the folder may be deleted before the last output arrives
    for (const output of [child.stdout, child.stderr])
      output?.on('data', (data) => file.write(data))
    child.once('close', () => file.end())
  }
}

/** Calls `onLine` for every new line of the files; returns a function that stops it. */
export function tailFiles(
  files: readonly LogFile[],
  onLine: (name: string, line: string) => void,
): () => void {
  const tails = files.map((file) => ({ ...file, at: 0, rest: '' }))
  let isReading = false
  const read = async () => {
    if (isReading) return
    isReading = true
    for (const file of tails) {
      const added = await readFrom(file.path, file.at)
      file.at += added.length
      const lines = (file.rest + added.toString()).split('\n')
      file.rest = lines.pop() ?? ''
      for (const line of lines) onLine(file.name, line)
    }
    isReading = false
  }
  const timer = setInterval(() => void read(), READ_EVERY_MS)
  return () => {
    clearInterval(timer)
  }
}

/** The bytes of a file from this position; none if the file does not exist. */
async function readFrom(path: string, at: number): Promise<Buffer> {
  const file = await open(path).catch(() => undefined)
  if (file === undefined) return Buffer.alloc(0)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES_MAX), {
      position: at,
    })
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
