// Runs `kubectl port-forward … &` as printed in a page, for the page's next commands.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { waitFor } from '../kit/wait-for.ts'
import { canConnect } from '../dependencies/can-connect.ts'

const PORT_MS_MAX = 30_000

/** The port forwards of one page. */
export interface PortForwards {
  /** Runs a command in the background until `stop`. Throws if its local port is in use. */
  readonly start: (command: string) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Creates an empty set; `start` takes `… LOCAL &` and `… LOCAL:REMOTE &`. */
export function createPortForwards(env: NodeJS.ProcessEnv = process.env): PortForwards {
  const running: { readonly kill: () => void; readonly stopped: Promise<unknown> }[] = []
  const stop = async () => {
    for (const { kill, stopped } of running.splice(0)) {
      kill()
      await stopped
    }
  }
  return {
    async start(command) {
      const port = Number(/ (\d+)(:\d+)? &$/.exec(command)?.[1])
      if (await canConnect(port)) throw new Error(`port ${port} is in use: ${command}`)
      const script = `exec ${command.replace(/ &$/, '')}`
      const child = spawn('sh', ['-ec', script], { stdio: 'ignore', env })
      running.push({ kill: () => void child.kill(), stopped: once(child, 'exit') })
      await waitFor(`port ${port} to be open`, () => canConnect(port), PORT_MS_MAX)
    },
    stop,
  }
}
