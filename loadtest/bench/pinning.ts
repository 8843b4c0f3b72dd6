// Keeps what is measured on one core and the load generator on another, so that neither takes the
// other's time. Needs Linux, two cores and taskset.
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

const SERVER_CORE = 0
const GENERATOR_CORE = 1

/** What to run before a program so that all its threads stay on the server's core. */
export const onServerCore = ['taskset', '-c', String(SERVER_CORE)] as const

/** Moves this process to the generator's core. Throws a sentence where that cannot be done. */
export function moveToGeneratorCore(): void {
  if (availableParallelism() < 2) throw new Error('a benchmark needs two cores')
  const args = ['-a', '-c', '-p', String(GENERATOR_CORE), String(process.pid)]
  const move = () => spawnSync('taskset', args, { encoding: 'utf8' })
  let done = move()
  if (done.status !== 0) done = move() // a thread of ours may have ended meanwhile
  if (done.status !== 0) {
    throw new Error(`a benchmark needs taskset (Linux, util-linux): ${done.stderr || 'not found'}`)
  }
}
