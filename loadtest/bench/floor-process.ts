// Starts a floor, a program that does only the minimum of the work, and exchanges IPC messages with
// it.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onServerCore } from './pinning.ts'

/** A running floor. */
export interface FloorProcess {
  readonly pid: number
  /** Sends a message and resolves to the reply. Only one request may be in flight. */
  request(message: object): Promise<unknown>
  /** Stops the process. */
  stop(): Promise<void>
}

const RESPONSE_MS_MAX = 120_000
const STOP_MS_MAX = 10_000

/** Starts the program `file` in this folder, by default on the server's core. */
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
          reject(new Error(`${file} did not reply within ${RESPONSE_MS_MAX} ms`))
        }, RESPONSE_MS_MAX)
        child.once('message', (reply) => {
          clearTimeout(timer)
          resolve(reply)
        })
        void exited.then(() => {
          clearTimeout(timer)
          reject(new Error(`${file} exited before its reply`))
        })
        child.send(message)
      }),
    async stop() {
      child.disconnect() // it cleans up and exits
      const forced = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await exited
      clearTimeout(forced)
    },
  }
}
