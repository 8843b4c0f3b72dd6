// `npm run stack`: starts the whole service on this machine and prints the addresses of all
// components. SIGUSR2 restarts those that exited; Ctrl-C stops all and deletes their files.
import { stopOnSignal } from '../../src/process/stop.ts'
import { canListen } from '../dependencies/loopback-block.ts'
import { tailFiles } from './log-files.ts'
import { describeStack } from './describe-stack.ts'
import { OptionError, parseRunOptions, runHelp, type RunOptions } from './run-options.ts'
import { type Stack, startStack } from './start-stack.ts'
import { supervise } from './supervise.ts'

/** A signal, because a background process that reads from the terminal is suspended. */
const RESTART_SIGNAL = 'SIGUSR2'
const restartCommand = `kill -USR2 ${String(process.pid)}`
/** Databases stop slowly, and a process still running at our exit would keep running. */
const STOP_MS_MAX = 120_000

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function run({ isSmall, showsLogs, port, ...options }: RunOptions): Promise<void> {
  if (!(await canListen({ address: '127.0.0.1', port }))) {
    throw new Error(`port ${String(port)} is in use: choose another one with --port`)
  }
  const aborting = new AbortController()
  const cassandraNodes = isSmall ? 1 : 3
  const { signal } = aborting
  const starting = startStack({ cassandraNodes, port, ...options, signal, onStep: print })
  const running = starting.then((stack) => {
    for (const line of describeStack(stack, restartCommand)) print(line)
    return { stack, stopWatching: watch(stack, showsLogs) }
  })
  stopOnSignal({
    stop: async () => {
      aborting.abort()
      print('stopping')
      const started = await running.catch(() => undefined) // a failed start stops what it started
      await started?.stopWatching()
      await started?.stack.stop()
      print('stopped')
      return 0
    },
    onFailure: printError,
    onTimeout: (ms) => {
      print(`not stopped within ${String(ms)} ms: exiting`)
    },
    msMax: () => STOP_MS_MAX,
  })
  await running.catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

/** Reports components that exit, and prints logs if requested; returns how to stop it. */
function watch({ components, logs }: Stack, showsLogs: boolean): () => Promise<void> {
  const supervisor = supervise({ components, restartCommand, log: print })
  const restart = () => void supervisor.restartDead()
  process.on(RESTART_SIGNAL, restart)
  const stopTail = showsLogs
    ? tailFiles(logs, (name, line) => {
        print(`${name} | ${line}`)
      })
    : () => undefined
  return async () => {
    process.off(RESTART_SIGNAL, restart)
    stopTail()
    await supervisor.stop()
  }
}

function printError(error: unknown): void {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
}

try {
  const options = parseRunOptions(process.argv.slice(2))
  if (options === 'help') process.stdout.write(runHelp)
  else await run(options)
} catch (error) {
  printError(error)
  process.exit(error instanceof OptionError ? 2 : 1)
}
