// `kubectl port-forward … &` as a page prints it, for the commands that come after it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { waitFor } from '../component/wait-for.ts'
import { canConnect } from '../parts/can-connect.ts'

const PORT_MS_MAX = 30_000

/** The forwards of one page. */
export interface Forwards {
  /** Runs one in the background until `end`. Throws if its local port is in use. */
  readonly begin: (command: string) => Promise<void>
  readonly end: () => Promise<void>
}

/** Makes the words; `begin` takes `… LOCAL &` and `… LOCAL:REMOTE &`. */
export function createForwards(env: NodeJS.ProcessEnv = process.env): Forwards {
  const running: { readonly kill: () => void; readonly ended: Promise<unknown> }[] = []
  const end = async () => {
    for (const { kill, ended } of running.splice(0)) {
      kill()
      await ended
    }
  }
  return {
    async begin(command) {
      const port = Number(/ (\d+)(:\d+)? &$/.exec(command)?.[1])
      if (await canConnect(port)) throw new Error(`port ${port} is in use: ${command}`)
      const script = `exec ${command.replace(/ &$/, '')}`
      const child = spawn('sh', ['-ec', script], { stdio: 'ignore', env })
      running.push({ kill: () => void child.kill(), ended: once(child, 'exit') })
      await waitFor(`port ${port} to be open`, () => canConnect(port), PORT_MS_MAX)
    },
    end,
  }
}
