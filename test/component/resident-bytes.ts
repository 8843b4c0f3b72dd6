// The memory of a process of this machine, as Linux counts it.
import { readFile } from 'node:fs/promises'

/** Its resident memory in bytes. Throws where there is no such process. */
export async function residentBytes(pid: number): Promise<number> {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))
  if (found === null) throw new Error(`process ${pid} says nothing of its memory`)
  return Number(found[1]) * 1024
}
