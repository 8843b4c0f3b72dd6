// Starts a floor, a program that does the least that could do the work, and talks to it by
// messages.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onServerCore } from './pinning.ts'

/** A floor that runs. */
export interface FloorProcess {
  readonly pid: number
  /** Sends a message and resolves to the answer to it. One at a time. */
  request(message: object): Promise<unknown>
  /** Ends it. */
  stop(): Promise<void>
}

const RESPONSE_MS_MAX = 120_000
const STOP_MS_MAX = 10_000

/** Starts the program in `file`, which stands beside this one; on the server's core by default. */
export function startFloor(file: string, wrapper: readonly string[] = onServerCore): FloorProcess {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const [command, ...args] = [...wrapper, process.execPath, path]
  const child: ChildProcess = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = new Promise<void>((resolve) => {
    child.on('exit', () => {
      resolve()
    })
  })
  return {
    pid: child.pid ?? 0,
    request: (message) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new Error(`${file} did not answer in time`))
        }, RESPONSE_MS_MAX)
        child.once('message', (response) => {
          clearTimeout(timer)
          resolve(response)
        })
        void exited.then(() => {
          clearTimeout(timer)
          reject(new Error(`${file} ended before it answered`))
        })
        child.send(message)
      }),
    async stop() {
      child.disconnect() // it tidies up and ends
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await exited
      clearTimeout(forced)
    },
  }
}
