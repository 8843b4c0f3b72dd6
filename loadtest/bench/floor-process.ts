// Starts a floor, a program that does the least that could do the work, and talks to it by
// messages.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onServerCore } from './pinning.ts'

/** A floor that runs. */
export interface FloorProcess {
  readonly pid: number
  /** Sends a message and resolves to the answer to it. One at a time. */
  ask(message: object): Promise<unknown>
  /** Ends it. */
  stop(): Promise<void>
}

const ANSWER_MS_MAX = 120_000
const STOP_MS_MAX = 10_000

/** Starts the program in `file`, which stands beside this one; on the server's core by default. */
export function startFloor(file: string, wrapper: readonly string[] = onServerCore): FloorProcess {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const [command, ...args] = [...wrapper, process.execPath, path]
  const child: ChildProcess = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = new Promise<void>((resolve) => {
    child.on('exit', () => {
      resolve()
    })
  })
  return {
    pid: child.pid ?? 0,
    ask: (message) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          reject(new Error(`${file} did not answer in time`))
        }, ANSWER_MS_MAX)
        child.once('message', (answer) => {
          clearTimeout(late)
          resolve(answer)
        })
        void ended.then(() => {
          clearTimeout(late)
          reject(new Error(`${file} ended before it answered`))
        })
        child.send(message)
      }),
    async stop() {
      child.disconnect() // it tidies up and ends
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await ended
      clearTimeout(forced)
    },
  }
}
