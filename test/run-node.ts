// Runs Node.js as a step of the tests and reports the cause of a failure, also of a timeout.
import { spawn } from 'node:child_process'

/**
 * Runs Node.js with `args` for at most `timeout` ms; resolves to the cause of its failure, or
 * `undefined` if it exited with 0.
 */
export async function runNode(
  args: readonly string[],
  { env, timeout }: { env: NodeJS.ProcessEnv; timeout: number },
): Promise<string | undefined> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, args, { stdio: 'inherit', env, timeout })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      const timedOut = signal === 'SIGTERM' && performance.now() - startedMs >= timeout
      if (code === 0) resolve(undefined)
      else if (timedOut) resolve(`timed out after ${String(timeout / 1000)} s`)
      else resolve(signal === null ? `exit code ${String(code)}` : `terminated by ${signal}`)
    })
  })
}
