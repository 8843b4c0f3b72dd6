// The memory of a process of this machine, as Linux counts it.
import { readFile } from 'node:fs/promises'

/** Its resident memory in bytes. Throws where there is no such process. */
export async function residentBytes(pid: number): Promise<number> {
  return residentBytesIn(await readFile(`/proc/${pid}/status`, 'utf8'))
}

/** The same, from what /proc/PID/status says. Throws where it says nothing of memory. */
export function residentBytesIn(status: string): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(status)
  if (found === null) throw new Error(`a process says nothing of its memory: ${status}`)
  return Number(found[1]) * 1024
}

/** The most of each quarter of some samples. */
export function mostByQuarter(samples: readonly number[]): readonly number[] {
  return [0, 1, 2, 3].map((quarter) => {
    const [from, to] = [quarter, quarter + 1].map((at) => Math.floor((at * samples.length) / 4))
    return Math.max(...samples.slice(from, to))
  })
}
