// Reads the CPU time and the memory of a process from /proc. Linux only.
import { readFileSync } from 'node:fs'

/** USER_HZ, the unit of the times in /proc/PID/stat: 100 on all supported platforms. */
const TICKS_PER_SECOND = 100
/** Index of utime, before stime, after the program's name, which may contain spaces. */
const UTIME_AT = 11

/** User and system CPU time of all threads of a process so far, in µs; exact to 10 ms. */
export function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[UTIME_AT]) + Number(fields[UTIME_AT + 1])
  return (ticks / TICKS_PER_SECOND) * 1e6
}

/** Resident memory of a process in MB (10⁶ bytes). */
export interface Memory {
  readonly nowMb: number
  /** The maximum since its start. */
  readonly peakMb: number
  /** Of `nowMb`: heaps, stacks and buffers, which no other process shares. */
  readonly anonymousMb: number
  /** Of `nowMb`: mapped files, most of them the program, which all its processes share. */
  readonly fileMb: number
}

/** Reads the resident memory of a process. */
export function residentMbOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string) =>
    (Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
  return {
    nowMb: megabytes('VmRSS'),
    peakMb: megabytes('VmHWM'),
    anonymousMb: megabytes('RssAnon'),
    fileMb: megabytes('RssFile'),
  }
}
