// The resident memory of a process on this machine, from Linux's /proc.
import { readFile } from 'node:fs/promises'

/** The resident memory in bytes. Throws if the process does not exist. */
export async function residentBytes(pid: number): Promise<number> {
  return residentBytesIn(await readFile(`/proc/${pid}/status`, 'utf8'))
}

/** The resident memory from /proc/PID/status. Throws if the file has no memory field. */
export function residentBytesIn(status: string): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(status)
  if (found === null) throw new Error(`no VmRSS in the status of a process: ${status}`)
  return Number(found[1]) * 1024
}

/** The maximum of each quarter of the samples. */
export function maxByQuarter(samples: readonly number[]): readonly number[] {
  return [0, 1, 2, 3].map((quarter) => {
    const [from, to] = [quarter, quarter + 1].map((at) => Math.floor((at * samples.length) / 4))
    return Math.max(...samples.slice(from, to))
  })
}
