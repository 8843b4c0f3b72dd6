// Pins the measured process to one core and the load generator to another, so that they do not
// compete, and moves processes to cores. Needs Linux, two cores and taskset.
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

const SERVER_CORE = 0
const GENERATOR_CORE = 1

/** The command prefix that pins a program with all its threads to the server's core. */
export const onServerCore = ['taskset', '-c', String(SERVER_CORE)] as const

/** Moves this process to the generator's core. Throws an error with the reason if it cannot. */
export function moveToGeneratorCore(): void {
  if (availableParallelism() < 2) throw new Error('a benchmark needs two cores')
  moveToCores(process.pid, String(GENERATOR_CORE))
}

/** Moves a process with all its threads to cores, such as `0-3`. Throws an error if it cannot. */
export function moveToCores(pid: number, cores: string): void {
  const args = ['-a', '-c', '-p', cores, String(pid)]
  const move = () => spawnSync('taskset', args, { encoding: 'utf8' })
  let done = move()
  if (done.status !== 0) done = move() // a thread of the process may have exited meanwhile
  if (done.status !== 0) {
    throw new Error(`a benchmark needs taskset (Linux, util-linux): ${done.stderr || 'not found'}`)
  }
}
