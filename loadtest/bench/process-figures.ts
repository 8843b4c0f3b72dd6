// What the kernel says of a process: its CPU time and its memory. Linux only.
import { readFileSync } from 'node:fs'

/** Ticks a second of the times in /proc/PID/stat: USER_HZ, the same on every Linux of ours. */
const TICKS_A_SECOND = 100
/** Places of utime and stime after the name of the program, which may hold spaces itself. */
const UTIME_AT = 11

/** User and system CPU time of all threads of a process so far, in µs; exact to 10 ms. */
export function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[UTIME_AT]) + Number(fields[UTIME_AT + 1])
  return (ticks / TICKS_A_SECOND) * 1e6
}

/** Resident memory of a process, in MB (10⁶ bytes): now, and the most it ever was. */
export function residentMbOf(pid: number): { nowMb: number; peakMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string) =>
    (Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
  return { nowMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM') }
}
