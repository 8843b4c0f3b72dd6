// `npm run stack`: starts the whole service on this machine and prints the addresses of all
// components. SIGUSR2 restarts the components that died; Ctrl-C stops all and deletes their files.
import { stopOnSignal } from '../../src/process/stop.ts'
import { canListen } from '../dependencies/loopback-block.ts'
import { followFiles } from './log-files.ts'
import { describeStack } from './describe-stack.ts'
import { OptionError, parseRunOptions, runHelp, type RunOptions } from './run-options.ts'
import { type Stack, startStack } from './start-stack.ts'
import { supervise } from './supervise.ts'

/** A signal, because a process in the background is stopped when it reads from the terminal. */
const RESTART_SIGNAL = 'SIGUSR2'
const restartCommand = `kill -USR2 ${String(process.pid)}`
/** Databases stop slowly; a process that is not waited for would keep running. */
const STOP_MS_MAX = 120_000

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function run({ isSmall, showsLogs, port, trustedHops, codes }: RunOptions): Promise<void> {
  if (!(await canListen({ address: '127.0.0.1', port }))) {
    throw new Error(`port ${String(port)} is in use: choose another one with --port`)
  }
  const ending = new AbortController()
  const cassandraNodes = isSmall ? 1 : 3
  const { signal } = ending
  const starting = startStack({ cassandraNodes, codes, port, trustedHops, signal, onStep: print })
  const running = starting.then((stack) => {
    for (const line of describeStack(stack, restartCommand)) print(line)
    return { stack, quiet: watch(stack, showsLogs) }
  })
  stopOnSignal({
    stop: async () => {
      ending.abort()
      print('stopping')
      const started = await running.catch(() => undefined) // it has already stopped what it started
      await started?.quiet()
      await started?.stack.stop()
      print('stopped')
      return 0
    },
    onFailure: complain,
    onTimeout: (ms) => {
      print(`not stopped within ${String(ms)} ms: exiting`)
    },
    msMax: () => STOP_MS_MAX,
  })
  await running.catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

/** Reports components that die, and prints the logs if requested; returns how to stop it. */
function watch({ parts, logs }: Stack, showsLogs: boolean): () => Promise<void> {
  const supervisor = supervise({ parts, how: restartCommand, say: print })
  const restart = () => void supervisor.restartDead()
  process.on(RESTART_SIGNAL, restart)
  const unfollow = showsLogs
    ? followFiles(logs, (name, line) => {
        print(`${name} | ${line}`)
      })
    : () => undefined
  return async () => {
    process.off(RESTART_SIGNAL, restart)
    unfollow()
    await supervisor.stop()
  }
}

function complain(error: unknown): void {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
}

try {
  const options = parseRunOptions(process.argv.slice(2))
  if (options === 'help') process.stdout.write(runHelp)
  else await run(options)
} catch (error) {
  complain(error)
  process.exit(error instanceof OptionError ? 2 : 1)
}
