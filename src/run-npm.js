// Runs npm and other programs for launch.js, each with a deadline. Plain JavaScript, because it
// must run on the system's Node 20.
import { spawn } from 'node:child_process'

/** The deadline of one attempt. */
export const INSTALL_MINUTES_MAX = 10
/** A program that still runs this long after its deadline is killed. */
const KILL_MS = 10_000

/**
 * Runs npm, preferring what is in its cache. If that fails, retries without this preference: the
 * cached list of versions may be too old for package-lock.json.
 * @param {readonly string[]} args
 * @param {string} cwd
 */
export const runNpm = (args, cwd) =>
  run('npm', [...args, '--prefer-offline', '--loglevel=silent'], cwd).catch(() =>
    run('npm', [...args, '--loglevel=error'], cwd),
  )

/**
 * Runs a program; its errors are printed on stderr.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {string} cwd
 * @returns {Promise<void>}
 */
export function run(program, args, cwd) {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'ignore', 2] })
  process.on('exit', () => child.kill())
  const failed = `${program} ${args[0]} failed`
  let isOverdue = false
  const msMax = INSTALL_MINUTES_MAX * 60_000
  // Not referenced: they have no effect after the program has exited.
  setTimeout(() => (isOverdue = child.kill()), msMax).unref()
  setTimeout(() => child.kill('SIGKILL'), msMax + KILL_MS).unref()
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(new Error(`${failed}: ${error.message}`))
    })
    child.on('exit', (code, signal) => {
      if (code === 0) resolve()
      else if (isOverdue)
        reject(new Error(`${failed}: not done within ${INSTALL_MINUTES_MAX} minutes`))
      else if (code !== null) reject(new Error(`${failed}: its output is above`))
      else reject(new Error(`${failed}: stopped by ${signal}`))
    })
  })
}
